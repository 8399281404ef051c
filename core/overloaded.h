// One visitor made of several functions, for std::visit.
#pragma once

namespace flow {

//   std::visit(Overloaded{[](const Circle& it) { … }, [](const Square& it) { … }}, shape);
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace flow
