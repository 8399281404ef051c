#include "nn/file.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/safetensors.h"
#include "ops/creation/creation.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

constexpr int kNotAllowed = 77;

// The exit status of `body`, run by a child with a disk of 64 KiB of its own at `folder`, or
// kNotAllowed where this user may mount nothing.
int run_on_small_disk(const std::string& folder, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const bool is_mounted = unshare(CLONE_NEWNS) == 0 &&
                            mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
    _exit(is_mounted ? body() : kNotAllowed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class File : public testing::Test {
 protected:
  const TempFolder temp_;
  const std::string folder_ = temp_.path();
};

TEST_F(File, AFullDiskIsAnErrorAndKeepsTheOldFile) {
  const Tensor small = ones({100}), large = ones({100'000});
  const int status = run_on_small_disk(folder_, [&] {
    const std::string path = folder_ + "/weights";
    save_safetensors(path, {{"w", small}});
    try {
      save_safetensors(path, {{"w", large}});
      return 1;
    } catch (const IoError& error) {
      const std::string text = error.what();
      if (text.find(path) == std::string::npos) return 2;
      if (text.find("free space on the disk") == std::string::npos) return 3;
    }
    if (load_safetensors(path).at("w").numel() != 100) return 4;
    const auto files = std::filesystem::directory_iterator(folder_);
    return std::distance(begin(files), end(files)) == 1 ? 0 : 5;
  });
  if (status == kNotAllowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST_F(File, AppearsAtCommitOnly) {
  const std::string path = folder_ + "/f";
  {
    OutputFile file(path);
    file.write("abc", 3);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  OutputFile file(path);
  file.write("abc", 3);
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(read_text(path), "abc");
}

TEST_F(File, LinksAreFollowed) {
  std::filesystem::create_directory(folder_ + "/disk");
  std::filesystem::create_symlink("disk/f", folder_ + "/there");  // to nothing yet
  std::filesystem::create_symlink(folder_ + "/there", folder_ + "/link");
  for (const char* text : {"abc", "abd"}) {
    OutputFile file(folder_ + "/link");
    file.write(text, 3);
    file.commit();
    EXPECT_EQ(read_text(folder_ + "/disk/f"), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/there"));
  const auto files = std::filesystem::directory_iterator(folder_ + "/disk");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(File, RanksMayWriteOnePathAtOnce) {
  const std::string path = folder_ + "/f";
  run_ranks(3, [&] {
    OutputFile file(path);
    file.write("abc", 3);
    env::barrier();
    file.commit();
  });
  EXPECT_EQ(read_text(path), "abc");
  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(File, WhatACrashLeftIsNotInTheWay) {
  const std::string path = folder_ + "/f";
  std::ofstream(str(path, ".tmp.", getpid())) << "half";
  for (int i = 0; i < 100; ++i)  // of an earlier process of this id
    std::ofstream(str(path, ".tmp.", getpid(), '.', i)) << "half";
  OutputFile file(path);
  file.write("abc", 3);
  file.commit();
  EXPECT_EQ(read_text(path), "abc");
}

TEST_F(File, OfAFolderOrNothingIsRefused) {
  EXPECT_THROW(InputFile{folder_}, IoError);
  EXPECT_THROW(InputFile{folder_ + "/missing"}, IoError);
  EXPECT_THROW(OutputFile{folder_ + "/missing/f"}, IoError);
  EXPECT_THROW(OutputFile{folder_}, IoError);
}

TEST_F(File, DevicesAndPipesAreNotReplaced) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);

  EXPECT_THROW(save_safetensors(pipe, {{"w", ones({2})}}), IoError);
  EXPECT_THROW(load_safetensors(pipe), IoError);  // nor waited for

  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

// As on network file systems.
TEST_F(File, FoldersAreCommittedWithoutFlagsOfRename) {
  namespace fs = std::filesystem;
  const auto make = [&](const std::string& name, const std::string& text) {
    fs::create_directories(folder_ + "/" + name);
    std::ofstream(folder_ + "/" + name + "/file") << text;
    return folder_ + "/" + name;
  };
  const auto read = [&](const std::string& name) {
    std::string text;
    std::ifstream(folder_ + "/" + name + "/file") >> text;
    return text;
  };

  EXPECT_TRUE(rename_in_two_steps(make("new", "first"), folder_ + "/step"));
  EXPECT_EQ(read("step"), "first");
  EXPECT_FALSE(rename_in_two_steps(make("new", "second"), folder_ + "/step"));
  EXPECT_EQ(read("step"), "second");
  EXPECT_EQ(read("new"), "first");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
  EXPECT_THROW(rename_in_two_steps(folder_ + "/missing", folder_ + "/step"), IoError);
  EXPECT_EQ(read("step"), "second");
}

}  // namespace
}  // namespace flow::nn
