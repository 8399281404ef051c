// A lock by which readers of a folder keep it from being removed.
#pragma once

#include <string>

namespace flow::nn {

// Thread safe. Holds the folder open, so that its files can be read after it has been renamed.
class FolderReader {
 public:
  // Throws IoError if the folder exists and cannot be opened.
  explicit FolderReader(const std::string& path);
  ~FolderReader();
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;

  // False if there is no such folder, or if a writer renamed it before this object had locked it,
  // and may be removing it.
  bool is_kept() const { return is_kept_; }

  // A path of a file of the folder that stays valid when the folder is renamed.
  std::string path_of(const std::string& file) const;

 private:
  int descriptor_ = -1;
  bool is_kept_ = false;
};

// Removes a folder that readers can no longer find, unless one of them still holds it; returns
// false then.
bool remove_unread_folder(const std::string& path);

}  // namespace flow::nn
