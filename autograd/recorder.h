// Step 4 of a call: recording it for backward.
#pragma once

#include <memory>

#include "core/dispatch.h"

namespace flow::autograd {

std::unique_ptr<Recorder> make_recorder();

}  // namespace flow::autograd
