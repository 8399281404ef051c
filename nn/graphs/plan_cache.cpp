#include "nn/graphs/plan_cache.h"

#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "nn/file.h"

namespace flow::nn {

graph::PlanStore plan_cache(const std::string& folder) {
  if (folder.empty()) return {};
  const auto path_of = [folder](const std::string& name) { return folder + "/" + name + ".plan"; };
  return {.read = [path_of](const std::string& name) -> std::optional<std::string> {
            const std::string path = path_of(name);
            std::error_code ignored;  // an inaccessible file counts as missing
            if (!std::filesystem::exists(path, ignored)) return {};
            return read_text(path);
          },
          .write =
              [folder, path_of](const std::string& name, const std::string& bytes) {
                std::error_code failure;
                std::filesystem::create_directories(folder, failure);
                if (failure) {
                  throw IoError(str("[plan_cache] the folder ", folder, " cannot be created: ",
                                    failure.message(), "; give a writable folder"));
                }
                OutputFile file(path_of(name));
                file.write(bytes.data(), bytes.size());
                file.commit();
              }};
}

}  // namespace flow::nn
