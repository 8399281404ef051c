// Modules of flow::nn in job functions.
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
  // The layouts of parameters and buffers on the devices of the scope's placement, by their names
  // in the module, as in Module::to_global. Empty: each device holds all of them whole. Consistent
  // view only.
  nn::SbpPatterns distribute = {};
};

namespace internal {

struct MadeModule {
  std::shared_ptr<void> module;  // has the requested type
  nn::ModuleBase base;
};

// Throws InvalidArgument if the existing module has another type or placement, or if one of the
// names of its variables is taken.
std::shared_ptr<void> module_named(std::string_view name, const std::type_info& type,
                                   const std::function<MadeModule()>& make,
                                   const ModuleOptions& options, Site site);

}  // namespace internal

// Returns the module `name`. The first function that asks for it makes it with `make` on every
// device; functions share it. Its parameters and persistent buffers become variables named
// NAME.fc1.weight and so on (fc1.weight if the name is empty), with the values from device 0. The
// module is in training mode in functions of type "train", else in evaluation mode. Must be called
// within a job function, else InvalidArgument.
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
