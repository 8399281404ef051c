// Written by flow-calibrate source on Intel(R) Xeon(R) Processor (sapphire-rapids avx512) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableSapphireRapidsAvx512 = {{
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdddddd wwwwdddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwdddwww wwwwdddwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddwww wwdddddwww wwdddddwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddwww wwdddddwww wwdddddwww",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddwww dddddddwww dddddddwww",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwdddddd wwwwdwwwww dddddwwwww dddddwwwww",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddddddd dddddwwwdd dddddwwwdd dddddwwwdd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dddddwwwdd dddddwwwww dddddwwwww dddddwwwww",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwdd dddddwwwww dddddddwww dddddddwww",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwwwww dddwwwwwww "
            "dddwwwwwww dddddwwwdd dddddwwwww dddddddwww dddddddwww",
        },
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwwwdddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww wwwwwwdddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwdd wwwwdwwwdd wwdddddddd wwdddddddd",
            "wwwwdddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwdd wwwwdwwwdd wwdddddddd wwdddddddd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww dddddddddd dddddddddd dddddddddd dddddddddd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwdwww dddddddddd dwwwdwwwdd dwwwdwwwdd dwwwdwwwdd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdddd dddddddddd dwwwdwwwdd dwwwdwwwdd dwwwdwwwdd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdddd dddddddddd dwwwdwwwdd dwwwdwwwdd dwwwdwwwdd",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwdwww wwwwwwdwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwdwww wwwwwwdwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddwww wwdddddwww wwdddddwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddwww wwdddddwww wwdddddwww",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwdd wwwwdwwwdd wwwwdwwwdd dddddddddd dddddddddd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwwwdd dwwwdwwwdd dwwwdwwwdd dddddddddd dddddddddd",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww dwwwdwwwww dwwwdwwwww dddddwwwww dddddwwwww",
            "dddddddddd wwwwdddddd wwwwdddddd wwwwwwdwww dwwwwwdwww "
            "dwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "dddddddddd wwwwdddddd wwwwdddddd wwwwwwdwww dwwwwwdwww "
            "dwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
        },
        {
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwdddddd wwwwdddddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwdddddddd wwwwdddddd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdwww wwwwdddwww wwwwdwwwww dddddwwwww dddddwwwww",
            "wwdddddddd wwwwdddddd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww dddddwwwww dddddwwwww",
            "wwdddddddd wwwwdddddd wwwwdddddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwdddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww dddddwwwww dwwwwwwwww dwwwwwwwww dwwwwwwwww",
            "dddddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww dddddwwwww dwwwwwwwww dwwwwwwwww dwwwwwwwww",
            "dddddddddd wwwwwwdddd wwwwwwdddd wwwwwwdwww wwwwwwdwww "
            "wwwwwwwwww dddddwwwww dwwwwwwwww dwwwwwwwww dwwwwwwwww",
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
