// What a call that must fail says.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"

namespace flow {

// what() of the E that `call` throws, with the place of the error; "no error" if it throws nothing.
template <class E = InvalidArgument>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// Like error_of, without the place.
template <class E = InvalidArgument>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace flow
