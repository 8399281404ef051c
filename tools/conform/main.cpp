// flow-conform: runs numbers made elsewhere through the public API and writes what comes out.
//   flow-conform optim SPEC.json OUT.safetensors
//   flow-conform scheduler SPEC.json OUT.json
//   flow-conform train RUN.json OUT_DIR [--steps N]
// Options: --device cpu|cuda --dtype f32|f64 --threads N. Exit status: 0 everything ran; 3
// something is not supported (a line on stderr each); 2 bad spec or usage; 1 another failure.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "eager/runtime.h"
#include "tools/conform/spec.h"

namespace flow::conform {
namespace {

constexpr int kFailure = 1, kBadSpec = 2, kNotSupported = 3;

struct Arguments {
  std::vector<std::string> words;
  Options options;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      arguments.words.push_back(word);
      continue;
    }
    if (word == "--graph" || word == "--layout" || word == "--schedule" ||
        word == "--micro-batches") {
      throw NotSupported(word + " is not supported yet");
    }
    if (i + 1 == argc) throw BadSpec(word + " needs a value");
    const std::string value = argv[++i];
    if (word == "--device" && value == "cpu") continue;
    if (word == "--device") throw NotSupported("device " + value);
    if (word == "--dtype" && (value == "f32" || value == "f64")) {
      arguments.options.widens = value == "f64";
    } else if (word == "--threads") {
      setenv("FLOW_NUM_THREADS", value.c_str(), 1);  // before the first call of the library
    } else if (word == "--steps") {
      arguments.options.steps = std::stoll(value);
    } else {
      throw BadSpec("unknown option " + word + " " + value);
    }
  }
  return arguments;
}

int run(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() != 3) throw BadSpec("usage: flow-conform optim|scheduler|train SPEC OUT");
  if (words[0] == "op" || words[0] == "box") throw NotSupported(words[0] + " is not there yet");
  const Spec spec = read_spec(words[1]);
  if (words[0] == "optim") return run_optim(spec, arguments.options, words[2]);
  if (words[0] == "scheduler") return run_scheduler(spec, words[2]);
  if (words[0] == "train") return run_train(spec, arguments.options, words[2]);
  throw BadSpec("there is no " + words[0] + "; use optim, scheduler or train");
}

int run_main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const NotSupported& error) {
    std::fprintf(stderr, "unsupported: %s\n", error.what());
    return kNotSupported;
  } catch (const BadSpec& error) {
    std::fprintf(stderr, "flow-conform: %s\n", error.what());
    return kBadSpec;
  } catch (const Json::exception& error) {
    std::fprintf(stderr, "flow-conform: bad spec: %s\n", error.what());
    return kBadSpec;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flow-conform: %s\n", error.what());
    return kFailure;
  }
}

}  // namespace
}  // namespace flow::conform

int main(int argc, char** argv) {
  return flow::conform::run_main(argc, argv);
}
