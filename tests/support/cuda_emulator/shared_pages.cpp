#include "shared_pages.h"

#include <atomic>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_emulator {

PagesName make_pages(size_t bytes) {
  static std::atomic<uint64_t> last = 0;
  PagesName made{getpid(), memfd_create("cuda-emulator", MFD_CLOEXEC), ++last};
  if (made.file >= 0 && ftruncate(made.file, static_cast<off_t>(bytes)) != 0) {
    close(made.file);
    made.file = -1;
  }
  return made;
}

int open_pages(const PagesName& name) {
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace cuda_emulator
