// Options of layers as Python writes them, for ModuleBase::set_extra_repr.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/shape.h"

namespace flow::nn::internal {

// The shortest decimals that give the number again: 0.1, 1.0, 1e-05, inf.
std::string text_of(double value);
// True or False.
std::string text_of(bool value);
std::string text_of(int64_t value);
// In quotes.
std::string text_of(std::string_view value);
std::string text_of(const char* value);
// One number as itself, several as a tuple: 2, (2, 3).
std::string text_of(const Ints& values);
// (2,), (2, 3).
std::string text_of(const Shape& values);

// "None" if it is not set.
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "None";
}

// A tuple with one number for each of `dims` dims; one number stands for all of them.
std::string tuple_text(const Ints& values, int64_t dims);

}  // namespace flow::nn::internal
