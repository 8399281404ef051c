// Lets the messages of a rank progress while it computes.
#pragma once

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Sends other processes of the job the data of pending messages that they have requested, as far as
// possible without waiting. Large messages progress only while their sender waits in a communicator
// or calls this function.
void advance_messages(RankContext& context);

}  // namespace flow::boxing
