// Messages of a rank that computes meanwhile.
#pragma once

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Gives other processes of the job what they ask for of messages under way, as far as it can be
// given now; waits for nothing. Large messages move only while their sender waits in a call of the
// communicator, or calls this.
void advance_messages(RankContext& context);

}  // namespace flow::boxing
