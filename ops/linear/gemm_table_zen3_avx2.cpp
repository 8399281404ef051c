// The majority of five runs of flow-calibrate source on AMD EPYC (zen3 avx2) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableZen3Avx2 = {{
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwwwdddd wwwwwwdwww wwwwdddwww wwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwww wwwwwwdwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdwww wwwwdddwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdwww wwwwdddwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwdddwwwww wwdddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwdddwwwww wwdwdwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwdwwwww "
            "dwwwdwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwdwwwww "
            "dwwwdwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddddd wwwwdddwww wwdddddddd wwdddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwdwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww dwwwwwwwww "
            "wwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww dwwwwwwwww "
            "wwwwwwwwww dddddwwwww dddddwwwww dddddwwwww dddddwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwwwdddd wwwwwwdwww wwwwdddwww wwwwdddwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwdd wwwwdwwwdd wwwwdwwwdd wwdddwwwdd wwdddwwwdd",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwdwwwwwww wwdwwwwwww dddwwwwwww dddwwwwwww",
            "wwwwwwdwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww dddwwwwwww",
            "wwwwdddwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwwwowww "
            "dwwwwwwwww dwwwwwwwww dwwwwwwwww dddddddwww dddddddwww",
            "wwwwdddwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwwwowww "
            "dwwwwwwwww dwwwwwwwww dwwwwwwwww dddddddwww dddddddwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwowdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdwww wwwwdddddd wwwwdwwwww wwdddwwwdd wwdddwwwdd",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwdd wwwwdwwwdd wwwwdwwwww wwdddwwwww wwdddwwwww",
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdwdd "
            "wwwwwwwwww wwwwdwwwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdwdd "
            "wwwwwwwwww wwwwdwwwww wwwwwwwwww dddwwwwwww dddwwwwwww",
            "wwwwwwdwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww dddwwwwwww",
            "wwwwdddwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwwwowww "
            "dwwwwwwwww dwwwwwwwww dwwwwwwwww dddddddwww dddddddwww",
            "wwwwdddwww wwwwwwwwww wwwwwwwwdd wwwwwwwwww dwwwwwowww "
            "dwwwwwwwww dwwwwwwwww dwwwwwwwww dddddddwww dddddddwww",
        },
    },
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwww wwwwwwwwww wwowwwwwww wwowwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
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
            "wwwwwwwwww wwwwwwwwww wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwoooo wwwwoooooo wwwwooowww wwooooowww wwooooowww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
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
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwowww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwoooo wwwwwwoooo wwwwwwoooo "
            "wwwwwwowww wwwwooowww wwwwooowww wwooooowww wwooooowww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo "
            "wwwwwwoooo wwwwoooooo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwowwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
