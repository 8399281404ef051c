// Modules in job functions.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "core/site.h"
#include "nn/module.h"

namespace flow::job {

struct ModuleOptions {
  // How parameters and buffers lie on the devices of the scope's placement, by their names in the
  // module, as in Module::to_global; none: whole on each. In consistent view.
  nn::SbpPatterns distribute = {};
};

namespace internal {

struct MadeModule {
  std::shared_ptr<void> module;  // of the type that was asked for
  nn::ModuleBase base;
};

// Throws InvalidArgument when the module has another type or placement, or a variable of it a name
// that is taken.
std::shared_ptr<void> module_named(std::string_view name, const std::type_info& type,
                                   const std::function<MadeModule()>& make,
                                   const ModuleOptions& options, Site site);

}  // namespace internal

// The module `name`, which `make` makes on every device at the first function that asks; functions
// share it. Its parameters and persistent buffers are variables NAME.fc1.weight and so on (without
// a name: fc1.weight), with the values that device 0's has. It is in training mode in functions of
// type "train", else in evaluation mode. Within a job function only.
//
//   auto train = job::global_function({.type = "train"}, …, [](job::Blob x, job::Blob y) {
//     auto model = job::get_module("lenet", [] { return flow::models::Lenet(); });
//     auto loss = flow::cross_entropy(model(x), y);
//     job::optimizer::SGD(…).minimize(loss);
//     return loss;
//   });
template <class Make>

requires std::derived_from<std::invoke_result_t<Make&>, nn::ModuleBase>

auto get_module(std::string_view name, Make make, const ModuleOptions& options = {},
                Site site = Site::here()) {
  using M = std::invoke_result_t<Make&>;
  const auto held = internal::module_named(
      name, typeid(M),
      [&] {
        auto module = std::make_shared<M>(make());
        return internal::MadeModule{module, *module};
      },
      options, site);
  return M(*static_cast<M*>(held.get()));
}

}  // namespace flow::job
