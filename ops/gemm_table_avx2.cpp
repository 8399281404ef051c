#include "ops/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable kGemmTableAvx2 = {{
    {
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
        },
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
        },
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
        },
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
        },
    },
    {
        {
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
        },
        {
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
        },
        {
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
        },
        {
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
