#include "nn/plan_cache.h"

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
            std::error_code ignored;  // what cannot be looked at is not there
            if (!std::filesystem::exists(path, ignored)) return {};
            return read_text(path);
          },
          .write =
              [folder, path_of](const std::string& name, const std::string& bytes) {
                std::error_code failure;
                std::filesystem::create_directories(folder, failure);
                if (failure) {
                  throw IoError(str("[plan_cache] the folder ", folder, " cannot be made: ",
                                    failure.message(), "; give a folder that can be written"));
                }
                OutputFile file(path_of(name));
                file.write(bytes.data(), bytes.size());
                file.commit();
              }};
}

}  // namespace flow::nn
