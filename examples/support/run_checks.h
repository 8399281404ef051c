// What a training must prove of itself. The errors end the program with an exit code other than 0.
#pragma once

#include <span>

namespace examples {

// Throws flow::Error unless the first loss equals that of one rank up to rounding: sums of
// float32 in another order differ by less than 1e-5 of the loss.
void check_first_loss(double loss, double of_one_rank);

// Throws flow::Error unless the losses that were computed again after a checkpoint are the
// last ones of `losses`, bit for bit.
void check_resumed_losses(std::span<const double> again, std::span<const double> losses);

}  // namespace examples
