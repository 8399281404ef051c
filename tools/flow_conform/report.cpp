#include "tools/flow_conform/report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "core/context.h"
#include "nn/checked_json.h"

namespace flow::conform {

namespace {

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void say(std::ostream& out, const std::string& line) {
  if (env::rank() == 0) out << on_one_line(line) << '\n';
}

}  // namespace

void Report::run(const std::string& id, const std::function<void()>& body) {
  try {
    body();
  } catch (const NotSupported& error) {
    not_supported(id, error.what());
  } catch (const Unsupported& error) {
    not_supported(id, error.what());
  } catch (const DistributedError&) {
    throw;  // the ranks no longer make the same calls
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {
    failed(id, error.what());
  }
}

void Report::run_raising(const std::string& id, const std::string& op,
                         const std::function<void()>& body) {
  try {
    body();
    say(std::cout, "not raised: " + id);
  } catch (const NotSupported& error) {
    not_supported(id, error.what());
  } catch (const DistributedError&) {
    throw;
  } catch (const InternalError& error) {
    failed(id, error.what());
  } catch (const Error& error) {
    // A message from code that several ops share names that code, so the called op is put before
    // it.
    const std::string message = error.what();
    const std::string name = '[' + op + ']';
    say(std::cout, str("raised: ", id, ": ", message.starts_with(name) ? "" : name + ' ', message));
  }
}

void Report::not_supported(const std::string& id, const std::string& reason) {
  say(std::cerr, str("unsupported: ", id, ": ", reason));
  if (exit_code_ == kDone) exit_code_ = kNotSupported;
}

void Report::failed(const std::string& id, const std::string& reason) {
  say(std::cerr, str("failed: ", id, ": ", reason));
  exit_code_ = kFailed;
}

ExitCode run_spec(const std::string& path, const std::function<ExitCode(const Json&)>& run) {
  constexpr int kMaxDepth = 16;
  const auto fail = [&](const std::string& why) { throw BadSpec(str(path, ": ", why)); };
  std::ifstream file(path);
  if (!file) throw IoError("cannot open " + path + "; check that the file exists");
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return run(nn::parse_checked(text.str(), {.max_depth = kMaxDepth}, fail));
  } catch (const Json::exception& error) {
    throw BadSpec(str(path, ": ", error.what()));
  } catch (const BadSpec& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    throw BadSpec(str(path, ": ", error.what()));
  }
}

std::string path_next_to(const std::string& spec, const std::string& file) {
  return (std::filesystem::path(spec).parent_path() / file).string();
}

}  // namespace flow::conform
