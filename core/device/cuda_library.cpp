#include "core/device/cuda_library.h"

#include <algorithm>
#include <mutex>

#include <dlfcn.h>
#include <link.h>

#include "core/env.h"

namespace flow::cuda {

namespace {

struct Loaded {
  std::mutex mutex;
  std::vector<std::string> files;
};

Loaded& loaded() {
  static Loaded& instance = *new Loaded;  // libraries may be loaded while statics are destroyed
  return instance;
}

std::vector<std::string> folders() {
  const std::string text = env_string("FLOW_CUDA_LIBS", "");
  std::vector<std::string> result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

void remember(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
  const std::lock_guard lock(loaded().mutex);
  loaded().files.emplace_back(map->l_name);
}

}  // namespace

void* load_library(std::initializer_list<std::string> names, const std::string& last_folder,
                   std::string& reason) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders()) {
    for (const std::string& name : names)
      paths.push_back(folder + "/" + name);
  }
  paths.insert(paths.end(), names);
  if (!last_folder.empty()) {
    for (const std::string& name : names)
      paths.push_back(last_folder + "/" + name);
  }
  for (const std::string& path : paths) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      remember(handle);
      return handle;
    }
    const char* text = dlerror();
    const std::string error = text != nullptr ? text : "unknown reason";
    // Why a file that is there cannot be loaded says more than that others are not there.
    const bool is_absent = error.starts_with(path + ": cannot open shared object file");
    if (reason.empty() || !is_absent) reason = error;
  }
  return nullptr;
}

void* find_function(void* library, const char* name) {
  return dlsym(library, name);
}

std::vector<std::string> loaded_libraries() {
  const std::lock_guard lock(loaded().mutex);
  return loaded().files;
}

}  // namespace flow::cuda
