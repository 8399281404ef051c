// Checkpoints on a disk that loses what was not synced. Every fsync of this program notes what has
// become durable: the content of a file, or the names in a folder. At each step of a save the tests
// put together what a crash could leave, from durable and lost parts, and load that (the idea of
// LevelDB's FaultInjectionTestEnv).
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/checkpoint_file.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

namespace fs = std::filesystem;

struct Entry {
  uint64_t inode = 0;
  bool is_folder = false;
};

using Names = std::map<std::string, Entry>;

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Entry entry_of(const fs::path& path) {
  struct stat info {};

  lstat(path.c_str(), &info);
  return {info.st_ino, S_ISDIR(info.st_mode)};
}

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code error;  // the folder may be going away
  for (const auto& entry : fs::directory_iterator(folder, error))
    names[entry.path().filename().string()] = entry_of(entry.path());
  return names;
}

// What is known of a tree of files, by inode.
struct Tree {
  std::map<uint64_t, std::string> contents;
  std::map<uint64_t, Names> names;

  void add(const fs::path& folder) {
    const uint64_t inode = entry_of(folder).inode;
    names[inode] = names_in(folder);
    for (const auto& [name, entry] : Names(names[inode])) {
      if (entry.is_folder) {
        add(folder / name);
      } else {
        contents[entry.inode] = content_of((folder / name).string());
      }
    }
  }
};

class Disk {
 public:
  static Disk& instance() {
    static Disk disk;
    return disk;
  }

  // From now on; all that is under `root` counts as durable.
  void start(const fs::path& root) {
    const std::lock_guard lock(mutex_);
    root_ = root;
    durable_ = {};
    durable_.add(root);
    is_recording_ = true;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    is_recording_ = false;
    for (const int file : kept_)
      close(file);
    kept_.clear();
  }

  void note_sync(int file) {
    const std::lock_guard lock(mutex_);
    if (!is_recording_) return;

    struct stat info {};

    fstat(file, &info);
    kept_.push_back(dup(file));  // so that no other file gets its number
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    if (S_ISDIR(info.st_mode)) {
      durable_.names[info.st_ino] = names_in(path + "/.");
    } else {
      durable_.contents[info.st_ino] = content_of(path);
    }
  }

  // Lets the disk crash: of what is not durable, names and contents stay by chance.
  void crash_into(const fs::path& target, double names_stay, double contents_stay, uint32_t seed) {
    const std::lock_guard lock(mutex_);
    Tree live;
    live.add(root_);
    std::mt19937 random(seed);
    const auto stays = [&](double chance) {
      return std::uniform_real_distribution<>()(random) < chance;
    };
    const auto put = [&](const auto& self, const fs::path& folder, uint64_t inode) -> void {
      fs::create_directories(folder);
      const Tree& source = stays(names_stay) && live.names.contains(inode) ? live : durable_;
      const auto found = source.names.find(inode);
      if (found == source.names.end()) return;
      for (const auto& [name, entry] : found->second) {
        if (entry.is_folder) {
          self(self, folder / name, entry.inode);
          continue;
        }
        const bool is_live = stays(contents_stay) && live.contents.contains(entry.inode);
        const Tree& of_content = is_live ? live : durable_;
        const auto content = of_content.contents.find(entry.inode);
        std::ofstream(folder / name, std::ios::binary)
            << (content == of_content.contents.end() ? std::string() : content->second);
      }
    };
    put(put, target, entry_of(root_).inode);
  }

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  bool is_recording_ = false;
  fs::path root_;
  Tree durable_;
  std::vector<int> kept_;
};

}  // namespace
}  // namespace flow::nn

// In the place of the C library's, for the whole program.
extern "C" int fsync(int file) {
  const auto status = static_cast<int>(syscall(SYS_fsync, file));
  if (status == 0) flow::nn::Disk::instance().note_sync(file);
  return status;
}

namespace flow::nn {
namespace {

struct Crash {
  std::string folder;
  std::string event;
  bool is_of_disk = true;  // false: only the processes are killed, and the disk loses nothing
};

// Where and when crashes are taken, while a save runs.
struct Crashes {
  std::mutex mutex;
  std::string folder;
  std::vector<Crash> all;
};

Crashes& crashes() {
  static Crashes instance;
  return instance;
}

// What a disk may keep of what is not synced: nothing, the names, some of the names and contents,
// or all, as when only the processes are killed.
constexpr std::array<std::pair<double, double>, 4> kStays = {{{0, 0}, {1, 0}, {0.5, 0.5}, {1, 1}}};

void crash_before(const char* event) {
  const std::lock_guard lock(crashes().mutex);
  for (const auto& [names, contents] : kStays) {
    const size_t number = crashes().all.size();
    const std::string folder = crashes().folder + "/" + std::to_string(number);
    Disk::instance().crash_into(folder, names, contents, static_cast<uint32_t>(number));
    crashes().all.push_back({folder, event, names < 1 || contents < 1});
  }
}

class CheckpointCrash : public testing::Test {
 protected:
  CheckpointCrash() {
    fs::create_directories(base_ + "/disk");
    crashes().folder = base_ + "/crashes";
    crashes().all.clear();
  }

  ~CheckpointCrash() override {
    internal::set_file_event_hook(nullptr);
    Disk::instance().stop();
  }

  // Ranks save {"w": 5 rows of 3 times `factor`, "b": `factor`} below a disk.
  static void save_below(const std::string& disk, int64_t step, double factor, int64_t ranks,
                         int64_t keep_last) {
    std::vector<int64_t> numbers(static_cast<size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    const Placement all("cpu", numbers);
    run_ranks(static_cast<int>(ranks), [&] {
      CheckpointFolder(disk + "/run/of", {.keep_last = keep_last})
          .save(step, {{"w", full({5, 3}, factor, {.placement = all, .sbp = sbp::split(0)})},
                       {"b", full({3}, factor, {.placement = all, .sbp = sbp::broadcast})}});
    });
  }

  // Two ranks save into the only kept checkpoint.
  void save(int64_t step, double factor) const { save_below(base_ + "/disk", step, factor, 2, 1); }

  // As save(), with a crash before each of its steps, and after it.
  void save_with_crashes(int64_t step, double factor) const {
    Disk::instance().start(base_ + "/disk");
    internal::set_file_event_hook(crash_before);
    save(step, factor);
    internal::set_file_event_hook(nullptr);
    crash_before("the end");
    Disk::instance().stop();
  }

  // The factor of the newest checkpoint in a disk that has crashed; 0 where there is none. Throws
  // what reading any of them throws.
  static double factor_in(const Crash& crash) {
    const CheckpointFolder folder(crash.folder + "/run/of");
    double factor = 0;
    for (const int64_t step : folder.steps()) {
      const Checkpoint checkpoint = folder.open(step);
      factor = checkpoint.read("b").to_vector<double>()[0];
      EXPECT_EQ(checkpoint.read("w").to_vector<double>(), std::vector<double>(15, factor));
    }
    return factor;
  }

  const TempFolder temp_{fast_parent()};  // each point writes some hundred files
  const std::string base_ = temp_.path();
};

TEST_F(CheckpointCrash, TheFirstOneIsThereOnceItIsSaved) {
  save_with_crashes(1, 1);

  for (const Crash& crash : crashes().all) {
    const double factor = factor_in(crash);
    EXPECT_TRUE(factor == 1 || (factor == 0 && crash.event != "the end"))
        << factor << " before " << crash.event << " in " << crash.folder;
  }
}

TEST_F(CheckpointCrash, TheOldOrTheNewIsThere) {
  for (const int64_t step : {2, 1}) {  // a new one, and one that takes the place of the old
    crashes().folder = base_ + "/crashes" + std::to_string(step);
    crashes().all.clear();
    fs::remove_all(base_ + "/disk/run");
    save(1, 1);

    save_with_crashes(step, 10);

    EXPECT_GE(crashes().all.size(), 12U * kStays.size());
    bool was_old = false;
    for (const Crash& crash : crashes().all) {
      const double factor = factor_in(crash);
      EXPECT_TRUE(factor == 10 || (factor == 1 && crash.event != "the end"))
          << factor << " before " << crash.event << " in " << crash.folder;
      was_old |= factor == 1;
    }
    EXPECT_TRUE(was_old);
  }
}

// Four ranks save a checkpoint after every step and keep two, as a training does. It is interrupted
// at each point at which the disk changes.
TEST_F(CheckpointCrash, AHundredPointsOfATrainingLeaveTheOldOrTheNew) {
  constexpr int64_t kRanks = 4, kKept = 2;
  size_t num_points = 0;
  for (int64_t step = 1; num_points < 100; ++step) {
    crashes().folder = base_ + "/crashes" + std::to_string(step);
    crashes().all.clear();
    Disk::instance().start(base_ + "/disk");
    internal::set_file_event_hook(crash_before);
    save_below(base_ + "/disk", step, static_cast<double>(step), kRanks, kKept);
    internal::set_file_event_hook(nullptr);
    crash_before("the end");
    Disk::instance().stop();

    for (const Crash& crash : crashes().all) {
      const CheckpointFolder folder(crash.folder + "/run/of");
      const std::vector<int64_t> steps = folder.steps();
      const int64_t newest = steps.empty() ? 0 : steps.back();
      EXPECT_TRUE(newest == step || (newest == step - 1 && crash.event != "the end"))
          << newest << " before " << crash.event << " of step " << step;
      EXPECT_LE(steps.size(), static_cast<size_t>(kKept) + 1);
      for (const int64_t kept : steps) {
        const Checkpoint checkpoint = folder.open(kept);
        const auto factor = static_cast<double>(kept);
        EXPECT_EQ(checkpoint.read("b").to_vector<double>(), std::vector<double>(3, factor));
        EXPECT_EQ(checkpoint.read("w").to_vector<double>(), std::vector<double>(15, factor));
      }
      if (crash.is_of_disk) continue;
      // The job goes on from there, whatever the interrupted save has left.
      save_below(crash.folder, newest + 1, static_cast<double>(newest + 1), kRanks, kKept);
      EXPECT_EQ(factor_in(crash), static_cast<double>(newest + 1)) << crash.event;
    }
    num_points += crashes().all.size() / kStays.size();
    fs::remove_all(crashes().folder);
    if (HasFailure() || step > 20) break;
  }
  EXPECT_GE(num_points, 100U);
}

}  // namespace
}  // namespace flow::nn
