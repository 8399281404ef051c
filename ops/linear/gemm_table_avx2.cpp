// Written by tools/calibrate on Intel(R) Xeon(R) Processor with
// oneDNN 2.6.3 and OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableAvx2 = {{
    {
        {
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd wwwwwddddd "
            "wwwwdddddd wwwddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddddo wwdddddddo dddddddooo",
            "wwwddddddd wwwwwwdddd wwwwwwwwdd wwwwwwwddd wwwwwddddd "
            "wwwwdddddd wwwwdddddd wwwddddddd odddddddoo ddddddddoo",
            "wwwddddddd wwwwwddddd wwwwwwwwdd wwwwwddddd wwwwdddddd "
            "wwwddddddd dwwddddddd owdddddddd ddddddddoo ddddddddoo",
            "wwdddddddd wwwwdddddd wwwwwddddd wwwwdddddd wwwddddddd "
            "wwwddddddd oddddddddd oddddddddd dddddddddd oddddddddd",
            "wddddddddd wwwwdddddd wwwwdddddd wwwddddddd wddddddddd "
            "dddddddddd dddddddddd oddddddddd oddddddddd oddddddddd",
            "wddddddddd wwwddddddd wwwddddddd wwwddddddd dddddddddd "
            "dddddddddd dddddddddd oddddddddd dddddddddo dddddddooo",
            "wddddddddd wwdddddddd wwwddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd oddddddddd ddddwddooo dddddddood",
            "wddddddddd dddddddddd wddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddood dddddddddo",
            "wddddddddd dddddddddd wddddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd ddddwddwoo ddddddddoo dddddddwdd",
        },
        {
            "wwoodddddd wwwddddddd wwwwdddddd wwwwdddddd wwwwdddddd "
            "wwwwdddddd wwwddddddd wwwddddddd wwdddddddd wddddddddd",
            "wwwddddddd wwwwoddddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddddd wddddddddd wddddddddd",
            "wwwddddddd wwwwwddddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwdddddddd oddddddddd oddddddddd",
            "wwoddddddd wwwwdddddd wwwwwwwwdd wwwwwwwddd wwwwwddddd "
            "wwwwdddddd wwwddddddd oddddddddd oddddddddd dddddddddd",
            "wwdddddddd wwwwdddddd wwwwwddddd wwwwdddddd wwwwdddddd "
            "wwwddddddd oddddddddd oddddddddd oddddddddd owdddddddd",
            "wddddddddd wwwddddddd wwwwdddddd wwwddddddd wwwddddddd "
            "wddddddddd oddddddddd oddddddddd oddddddddd oddddddddd",
            "wddddddddd wwwddddddd wwwwddwwdd wwwddddddd ddwddddddd "
            "dddddddddd oddddddddd oddddddddd oddddddddo owddddddoo",
            "wddddddddd wddddddddd wwwddddwdd ddwddddddd dddddddddd "
            "dddddddddd odddwddddd odddddddoo oddddddddd oddddddddd",
            "wddddddddd dddddddddd wwwddddwdd ddwddddddd dddddddddd "
            "dddddddddd oddddddddo oddddddddd oddddddddd dddddddddd",
            "wddddddddd dddddddddd wwwdddwwdd ddwddddddd dddddddddd "
            "dddddddddd oddddddddo dddddddddd dddddddddd ddddddddod",
        },
        {
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd wwwwwddddd "
            "wwwwdddddd wwwddddddd wddddddddd dddddddddd dddddddddd",
            "wwwwwddddd wwwwwwwddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddddd dwdddddddd dddddddddd",
            "wwwddddddd wwwwwwdddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwdddddd wwwwdddddd dwwddddddd oddddddddd dddddddddd",
            "wwdddddddd wwwwwddddd wwwwwwwddd wwwwwwdddd wwwwdwdddd "
            "dwwwdddddd dwwddddddd owwddddddd dddddddddd dddddddddo",
            "wddddddddd wwwwdddddd wwwwwwwddd wwwwdddddd wwwddddddd "
            "wwwddddddd odwddddddd oddddddddd dddddddddd dddddddddd",
            "dddddddddd wwwddddddd wwwwddwddd wwwddddddd dwwddddddd "
            "ddwddddddd dddddddddd oddddddddd oddddddddd owdddddddd",
            "dddddddddd wwwddddddd wwwddddddd wwwddddddd dddddddddd "
            "dddddddddd ddddddoodd oddddddodo dddddooooo dddddooooo",
            "dddddddddd wddddddddd wwwddddddd dddddddddd ddddddddoo "
            "ddddddddoo ddddddoooo oddddooooo dddddddooo dddddddooo",
            "dddddddddd ddddddddoo wddddddddd dddddddddd dddddddddd "
            "dddddddddd ddddddoood dddddwdooo dddddddooo ddddddddoo",
            "dddddddddd ddddddddoo wddddddddd dddddddddd dddddddddd "
            "dddddodddd dddddooooo dddddddood dddddddodd ddddddddod",
        },
        {
            "wwwddddddd wwwddddddd wwwwdddddd wwwwdddddd wwwwdddddd "
            "wwwwdddddd wwwddddddd wwwddddddd wwdddddddd wddddddddd",
            "wwwddddddd wwwwoddddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddddd wddddddddo wddddddddw",
            "wwwddddddd wwwwoddddd wwwwwwwddd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwwddddd wwwddddddd oddddddddd oddddddddw",
            "wddddddddd wwwwdddddd wwwwwwwddd wwwwwwwddd wwwwwddddd "
            "wwwwdddddd wwwddddddd odwddddddd oddddddddo dwddddddow",
            "wddddddddd wwwddddddd wwwwwwwddd wwwwdwdddd wwwwdddddd "
            "wwwddddddd odwddddddd oddddddddd oddddddddw owddddddww",
            "dddddddddd wwwddddddd wwwwdwwwdd wwwwdddddd dwwddddddd "
            "odwddddddd odwddddddw odwddddwdo odddddddoo owddddoooo",
            "dddddddddd wwdddddddd wwwwdwwwdd wwwwdwwddd ddwwddddoo "
            "ddwwdddood odwwdwoooo odwddwoooo odddwooooo owddwwoooo",
            "dddddddddd wddddddddd wwwddwwddd ddwdddddoo ddwwddddoo "
            "ddwddddooo odwdwwoooo odwdwooooo odddddddod dddddddooo",
            "dddddddddd dddddddddd wwwwdddddd dwwddddddd ddwddddddd "
            "ddwddddodd odwdwooooo odddddddoo oddddddodo dddddddood",
            "dddddddddd dddddddddo wwwddddddd ddwddddddd ddwdddoddd "
            "ddwddooodd odddwwoooo dddddddooo dddddddodd dddddddddd",
        },
    },
    {
        {
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooowo wwwwoooooo owwowwoooo owwwowoooo wwwwowoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwoooooo owwooooooo wwwooooooo wwwooooooo wwwooooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwowwww "
            "owwwowwwww owwowwoooo wwwwwwwooo owwwwwoooo wwwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwowwww "
            "owwwowwwwo owwowwoooo wwwwwwwooo owwwwwoooo wwwwwooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwww wwwwwwoooo wwwwwowwoo "
            "owwwowwowo oowowwoooo wwwwwwwooo oowwwwoooo owwwwooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo wwwwwwoooo wwwwwooooo "
            "owwwowwooo oowoowoooo ooowwwwooo oowwwwoooo owwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwwo owwwwwoooo wwwwwooooo "
            "owwwoooooo oowowooooo ooowwwwooo oowwwwwooo owwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo owwwwooooo owwwoowooo "
            "oowwowoooo oooowwoooo ooowwwwooo oowwwwwooo owwwwwoooo",
        },
        {
            "wwwwoooooo wwwwwooooo wwwwoooooo wwwooooooo wwwooooooo "
            "wwwowooooo wowooooooo wowooooooo wooooooooo wooooooooo",
            "wwwwoooooo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwwwwwoo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwowooo wwwwoooowo oowooowwoo oowwwwoooo wwwwoooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwoooow owwwoooooo wwwooooooo wwwooooooo wwwooooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww "
            "owwwwwwwww owwwwwooww wwwwwwwwwo wwwwwooooo wwwwoooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww "
            "wwwwwwwwww owwwwwowoo wwwwwwowow owwwwooooo wwwwowoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwow wwwwwwwwoo wwwwwwwwoo "
            "wwwwwwwwoo owwwooowoo wwwwowwooo owwwwwoooo owwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwwo wwwwwwwooo wwwwwwoooo "
            "owwwowwooo owwwwooooo oowwoooooo oowwwwoooo owwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo owwwwwwooo wwwwwwwooo "
            "owwwowoooo oowwowoooo ooowwwwooo oowwwwoooo owwwwwoooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwoo owwwwooooo wwwwoooooo "
            "oowwowoooo oooowwoooo ooowwwwooo oowwwwoooo owwwwwoooo",
        },
        {
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwowooo wwwwoowooo owwowwwowo owwwwwwooo wwwwowoooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwoooooo owwooooooo wwwooowooo wwwooooooo wwwooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwoooww "
            "owwwowowwo owwowwwwwo wwwwowwwoo owwwwwwooo wwwwwwoooo",
            "wwwowwwwwo wwwwwwwwwo wwwwwwwwow wwwwwwoooo wwwwwooowo "
            "wwwwowowwo owwoowoooo wwwwwowooo owwwwwwooo wwwwwwoooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwooo wwwwwwoowo wwwwooowoo "
            "owwwowoooo oowowooooo wwwwwwoooo owwwwwoooo wwwwwwoooo",
            "wooowwwwoo wwwwwwwwow wwwwwwwooo wwwooooooo wwwwoooooo "
            "owwooooooo oowooooooo ooowwooooo oowwwwwooo owwwwwoooo",
            "ooowwwwooo wwwwwwwooo wwwwwwoooo owwooooooo owwwoooooo "
            "owwoowoooo ooooowoooo ooowwwwwoo oowwwwoooo owwwwwoooo",
            "owoooowooo wwwwwwwooo wwwwoooooo owwooooooo owwooooooo "
            "oowoowoooo oooowwoooo ooowwwwooo oowwwwwooo owwwwwoooo",
        },
        {
            "wwwwoooooo wwwwwwwooo wwwwwwoooo wwwooooooo wwwwoooooo "
            "wwwooooooo wowwoooooo wowooooooo wooooooooo wooooooooo",
            "wwwwoooooo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwwoooooo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwwowooo wwwwooooww oowoowwwww oowwowoooo wwwooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wwwwoooooo owwwoooooo wwwooooooo wwwooooooo wwwooooooo",
            "wwwwwwwwwo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "owwwwwwwww owwwwwwwow wwwwwwowww owwwwwoooo wwwwwooooo",
            "wwwwwwwwwo wwwwwwwwww wwwwwwwwow wwwwwwwooo wwwwwwoooo "
            "wwwwowowww owwwwwoooo wwwwowwooo owwwwooooo wwwwwwoooo",
            "wwwwwwwwoo wwwwwwwwwo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "owwwowoooo owwowooooo wwwwoooooo owwwwooooo owwwwooooo",
            "wwwwwwwwoo wwwwwwwwow wwwwwwwoow wwwwwwoooo wwwwoooooo "
            "owwwowwooo oowooooooo oowwwooooo oowwwwoooo owwwwooooo",
            "owwwwwwooo wwwwwwwwow wwwwwwwowo owwwoooooo wwwwooowwo "
            "owwwoowooo oowooowooo ooowwwoooo oowwwwoooo owwwwwoooo",
            "owwwowwwoo wwwwwwwwoo wwwwwooooo owwwoooooo owwwoooooo "
            "oowoowwooo oooowwoooo ooowwwoooo oowwwwwooo owwwwwoooo",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
