// A libFuzzer program for one of the formats:
//
//   parser_fuzzer --format=npy -max_total_time=600 CORPUS
//
// The folder CORPUS is created if it is missing, and gets the valid files of the format first.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/fuzz/formats.h"

namespace flow::fuzz {
namespace {

const Format* chosen = nullptr;

const Format& format_named(std::string_view name) {
  static const std::vector<Format> formats = all_formats();
  for (const Format& format : formats) {
    if (format.name == name) return format;
  }
  std::cerr << "--format=" << name << " is none of";
  for (const Format& format : formats)
    std::cerr << ' ' << format.name;
  std::cerr << '\n';
  std::exit(64);
}

void write_seeds(const Format& format, const std::filesystem::path& corpus) {
  std::filesystem::create_directories(corpus);
  for (size_t i = 0; i < format.seeds.size(); ++i)
    std::ofstream(corpus / ("seed" + std::to_string(i)), std::ios::binary) << format.seeds[i];
}

}  // namespace
}  // namespace flow::fuzz

extern "C" int LLVMFuzzerInitialize(const int* argc, char*** argv) {
  constexpr std::string_view kFormat = "--format=";
  std::string_view name, corpus;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word.starts_with(kFormat)) name = word.substr(kFormat.size());
    if (!word.starts_with("-") && corpus.empty()) corpus = word;
  }
  flow::fuzz::chosen = &flow::fuzz::format_named(name);
  if (!corpus.empty() && !std::filesystem::is_regular_file(corpus))
    flow::fuzz::write_seeds(*flow::fuzz::chosen, corpus);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const bool is_valid =
        flow::fuzz::chosen->read(std::string(reinterpret_cast<const char*>(data), size));
    flow::fuzz::require(is_valid || flow::fuzz::chosen->share_refused >= 0,
                        "a file is refused though all are valid");
  } catch (const std::exception& error) {
    std::cerr << "the reader raised " << error.what() << '\n';
    std::abort();
  }
  return 0;
}
