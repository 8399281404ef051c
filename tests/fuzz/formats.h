// The formats of all files and messages that flow reads, for tests that give the readers changed
// forms of valid files.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace flow::fuzz {

struct Format {
  std::string name;
  std::vector<std::string> seeds;  // valid files, made by flow's own writers
  // Reads a file of these bytes. Returns false if the reader refuses it with the exception of its
  // contract, whose message names the file. Throws if the reader does anything else.
  std::function<bool(const std::string& bytes)> read;
  // Of files with small changes, more than this share is refused. Negative: none is, because every
  // sequence of bytes is a valid file.
  double share_refused = 0.25;
};

std::vector<Format> all_formats();

// Each adds the formats of some folders.
void add_data_formats(std::vector<Format>& formats);
void add_tensor_formats(std::vector<Format>& formats);
void add_graph_formats(std::vector<Format>& formats);
void add_conform_formats(std::vector<Format>& formats);
void add_launcher_formats(std::vector<Format>& formats);

// A folder of this process that is removed at its end, in memory if the system has such a place.
const std::string& scratch_folder();
// Writes a file of that folder, and returns its path.
std::string write_scratch(const std::string& name, const std::string& bytes);

// Throws std::logic_error if the condition is false.
void require(bool condition, const std::string& what);

// True if read() returns, false if it throws an E, or an Other, whose message contains `file`.
template <class E, class Other = E, class Read>
bool reads_or_refuses(const std::string& file, const Read& read) {
  std::string message;
  try {
    read();
    return true;
  } catch (const E& error) {
    message = error.what();
  } catch (const std::exception& error) {
    if (dynamic_cast<const Other*>(&error) == nullptr) throw;
    message = error.what();
  }
  require(message.find(file) != std::string::npos, "the error does not name the file: " + message);
  return false;
}

}  // namespace flow::fuzz
