#include "boxing/ranks/advance.h"

#include "boxing/comm/process_world.h"
#include "core/context.h"

namespace flow::boxing {

void advance_messages(RankContext& context) {
  const auto& hung = context.slot_ptr<ProcessWorld>();
  if (ProcessWorld* processes = hung ? hung.get() : process_world()) processes->advance();
}

}  // namespace flow::boxing
