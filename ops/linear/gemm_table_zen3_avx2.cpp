// Written by flow-calibrate source on AMD EPYC (zen3 avx2) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableZen3Avx2 = {{
    {
        {
            "wwwwwwwwoo wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwdwww "
            "wwwwwwdwww wwwwdddddd wwwwwwwwww dddwwwwwww dddwwwwwww",
            "owdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwdddddwww "
            "wwdddddwww wwdddddddd wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "wwdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwdddwwwww "
            "wwdddwwwww wwdddwwwww wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "dddddddddd wwwwwwdddd wwwwwwdddd wwwwwwwwww dddddwwwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddwwwoo dddddwwwoo",
            "dddddddddd wwwwwwdddd wwwwwwdddd wwwwwwwwww dddddwwwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddwwwoo dddddwwwoo",
        },
        {
            "wwwwooowdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wwwwowwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wwwwowdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwdwww "
            "wwwwwwwwww wwwwdwwwww wwwwdwwwww wwdddwwwww wwdddwwwww",
            "owdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwdddddwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddwwwww dddddwwwww",
            "wwdddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww wwdddwwwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddwwwww dddddwwwww",
            "dddddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww dddddwwwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddddwoo dddddddwoo",
            "dddddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww dddddwwwww "
            "wwdddwwwww wwdddwwwww wwdddwwwww dddddddwoo dddddddwoo",
        },
        {
            "wwwwwwwwoo wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwowdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "ooowdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwdddddddd wwdddddddd",
            "owwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwwwww wwwwdwwwww wwwwwwwwww wwdwwwwwww wwdwwwwwww",
            "owdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwdddddd "
            "wwwwdwwwww wwdddwwwww wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "wwdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwdwwwwwww wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "dddddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww dddwowwwww "
            "wwdwwwwwww wwdwwwwwww wwdwwwwwww dddddddwoo dddddddwoo",
            "dddddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww dddwowwwww "
            "wwdwwwwwww wwdwwwwwww wwdwwwwwww dddddddwoo dddddddwoo",
        },
        {
            "wwwwooowdd wwwwwwwwdd wwwwwwdddd wwwwwwdddd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wwwwowwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwwwdddd wwwwwwdddd wwwwdddddd wwwwdddddd",
            "wwwwowdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwwwdddd wwwwwwdddd wwdddddddd wwdddddddd",
            "wwwwwwdddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wwwwwwdddd wwwwwwwwdd wwdddwwwdd wwdddwwwdd",
            "wwowdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd "
            "wwwwwwdddd wwwwdddddd wwwwdwwwdd dddddwwwdd dddddwwwdd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww dddwwwwwww",
            "owdddddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwww wwwwwwoooo "
            "wwwwwwwwww wwdwwwwwww wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "wwdddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwdwwwwwww wwdwwwwwww dddwwwwwoo dddwwwwwoo",
            "dddddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww "
            "wwdwwwwwww wwdwwwwwww wwdwwwwwww dddddwwwoo dddddwwwoo",
            "dddddddddd wwwwwwwwww wwwwwwwwww wwwwwwwwww dddwwwwwww "
            "wwdwwwwwww wwdwwwwwww wwdwwwwwww dddddwwwoo dddddwwwoo",
        },
    },
    {
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwoooo wwwwoooooo wwwwowwwoo wwooowwwoo wwooowwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwowwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwowwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
        },
        {
            "wwwwwwoooo wwwwwwoooo wwwwoooooo wwwwoooooo wwoooooooo "
            "wwoooooooo wwoooooooo wwoooooooo wwoooooooo wwoooooooo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwoo wwwwowwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwoo wwwwowwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "owwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "owwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwoooo wwwwoooooo wwwwowwwoo wwooowwwoo wwooowwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo "
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo "
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "owwwowwwoo wwwwowwwww wwwwowwwww wwwwowwwww wwwwowwwoo "
            "wwwwwwwwoo wwowwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "owwwowwwoo wwwwowwwww wwwwowwwww wwwwowwwww wwwwowwwoo "
            "wwwwwwwwoo wwowwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
        },
        {
            "wwwwwwoooo wwwwwwoooo wwwwoooooo wwwwoooooo wwoooooooo "
            "wwoooooooo wwoooooooo wwoooooooo wwoooooooo wwoooooooo",
            "wwwwwwoooo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwoooo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwoooo "
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "owwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
            "owwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwowwwww "
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
