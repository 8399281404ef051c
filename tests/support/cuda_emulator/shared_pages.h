// Pages that several processes map: the memory of blocks and the state of events that they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace cuda_emulator {

// Names pages in all processes of the machine, while their maker has them.
struct PagesName {
  pid_t process = 0;
  int file = -1;
  uint64_t serial = 0;  // no two pages of a process have the same
};

// Makes pages of zeros; the file is -1 if there is no room.
PagesName make_pages(size_t bytes);
// Their file, for this process to map and to close; -1: their maker has ended or closed them.
int open_pages(const PagesName& name);

}  // namespace cuda_emulator
