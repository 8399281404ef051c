// Where the parts of a GPT are: stages of a pipeline × data parallel × tensor parallel ranks.
#pragma once

#include <string>
#include <vector>

#include "flow/flow.h"

namespace examples {

struct GptLayoutOptions {
  std::string device = "cpu";
  int64_t stages = 1;  // of consecutive layers
  int64_t data = 1;    // ranks that share the samples of a batch
  int64_t tensor = 1;  // ranks that share heads and inner widths
};

// Each stage has data × tensor ranks. With only one rank on the CPU, tensors are local.
class GptLayout {
 public:
  // The layout of local tensors.
  GptLayout() = default;
  // Throws flow::InvalidArgument unless the job has stages × data × tensor ranks.
  explicit GptLayout(const GptLayoutOptions& options);

  bool is_local() const { return placements_.empty(); }

  // The layout of a batch of tokens: on the first stage, split over its data parallel ranks.
  flow::TensorOptions batch() const;

  // Lays out the parameters and assigns the layers to stages. Throws flow::InvalidArgument for more
  // stages than layers.
  void lay_out(flow::models::Gpt& model) const;

  // "2 stages x 2 data parallel x 1 tensor parallel ranks".
  std::string describe() const;

 private:
  GptLayoutOptions options_ = {};
  std::vector<flow::Placement> placements_ = {};  // by stage
};

}  // namespace examples
