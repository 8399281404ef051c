// Written by flow-calibrate source on Intel(R) Xeon(R) Processor (sapphire-rapids avx512) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64;
// depth 512. A library is chosen where at least four of five runs chose it.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableSapphireRapidsAvx512 = {{
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdwwwww wwwwdwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd dddddddddd dddddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwdddddd wwwwdddddd dddddddddd dddddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdwww wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwdddwww wwdddddwww wwdddddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww dddddddwww dddddddwww dddddddwww dddddddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddwwwww dwwwdwwwww dwwwdddwww dwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwwwww dwwwwwwwww "
            "dwwwwwwwww dddddwwwww dwwwdwwwww dwwwdddwww dwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwwwww dwwwwwwwww "
            "dwwwwwwwww dddddwwwww dwwwdwwwww dwwwdddwww dwwwdddwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdwwwww wwwwdwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd dddddddddd dddddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwdddddd wwwwdwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwdddd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddddddd dddddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwdwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwdddwww wwwwdddwww wwwwdddwww wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwdddwww wwwwdddwww wwwwdddwww wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwdddwww wwwwdddwww wwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwdwdwww wwwwdwdwww wwwwdwdwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdwww wwwwdddwww wwwwdddwww dddddddwww dddddddwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddwww wwwwdwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww dddddddwww dddddddwww dddddddwww dddddddwww",
            "wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddwwwww dwwwdwwwww dwwwdwwwww dwwwdwwwww",
            "wwwwdddwww wwwwdddwww wwwwdddwww wwwwwwwwww dwwwwwwwww "
            "dwwwwwwwww dddddwwwww dwwwdwwwww dwwwdwwwww dwwwdwwwww",
            "wwwwdddwww wwwwdddwww wwwwdddwww wwwwwwwwww dwwwwwwwww "
            "dwwwwwwwww dddddwwwww dwwwdwwwww dwwwdwwwww dwwwdwwwww",
        },
    },
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
