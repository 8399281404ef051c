// A library that is linked without a build id, with room for an op.
#include <cstddef>

extern "C" {
extern std::byte flow_test_room[1024];
alignas(64) std::byte flow_test_room[1024];
}
