// Written by tools/calibrate on Intel(R) Xeon(R) Processor with
// oneDNN 2.6.3 and OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64.

#include "ops/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable kGemmTableAvx2 = {{
    {
        {
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd wwwwwddddd "
            "wwwwdddddd wwdddddddd dddddddddd dddddddddd dddddddddd",
            "wwwwdddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddwdo wwddddoddd dddddddddd",
            "wwwddddddd wwwwwwdddd wwwwwwwwdd wwwwwwwddd wwwwwddddd "
            "wwwwdddddd owwddddddd dddddddddw dddddwdodo ddddwdoood",
            "wwwddddddd wwwwwddddd wwwwwwwwdd wwwwwwdddd wwwwdddddd "
            "owwddddddd odwddddddd dddddddddw ddddddddod dddddddddo",
            "wwdddddddd wwwwwddddd wwwwwwdwdd wwwwwddwdw owwwddwwdd "
            "owwddddddd oddddddddd dddddddddd dddwwddddd dwwddddddd",
            "wddddddddd wwwwdddddd wwwwwddwww wwwwdddwww owwddddddd "
            "ddwdddwwdd dddddddddd dddddddddd dddddddddd ddwwdddodo",
            "wddddddddd wwwddddddw wwwwwddwww dwwdddwwww ddddddwwww "
            "dddddwwwww ddddddwwww ddddddwwdw dddwwdddoo dwwwwwwooo",
            "wddddddddd wwwdddddww wwwddddwww dddddddwww ddddddwwww "
            "dddddwwwww ddddwdwwww ddddddwwww ddddwdddod dddddddood",
            "wddddddddd dddddddddd wwwdddddww ddwddddwww ddddddwwww "
            "dddddwwwww dddddwwwww ddddwwwwww dddddddddd dddddddddd",
            "wddddddddd dddddddddd wwwddwwwwd ddwddddwwd ddddddwwwd "
            "dddddwwwww ddddwwwwww ddddwwwwww dddddddwdd dddddddwdd",
        },
        {
            "wwoodddddd wwwddddddd wwwwdddddd wwwwdddddd wwwwdddddd "
            "wwwddddddd wwwddddddd wwwddddddd wwdddddddd wddddddddd",
            "wwwddddddd wwwwoddddd wwwwwwwwdd wwwwwwwddd wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdw wwddwwwddd wdddwwdddd",
            "wwoddddddd wwwwwddddd wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwww wwwwwwwwww wwdddwwwdw wwdddwdddd wddddddddd",
            "wwoddddddd wwwwwddddd wwwwwwwwdd wwwwwwwwwd wwwwwwwwdd "
            "owwwwddwww owwwdwwwww wddddddddd dddddddddd dddddddddd",
            "wwdddddddd wwwwdddddd wwwwwwwwdd wwwwddwwdw owwwdddwdd "
            "owwdddwwdw dddddwwwdw dddddwwwdw dddddddwdd dddddddwwd",
            "wddddddddd wwwddddddd wwwwddwwww wwwwdddwww dwwdddwddw "
            "ddwdddwddw oddddwdwww dddddwdwww ddwddddddd dwdddddddd",
            "wddddddddd wwwddddddw wwwwdwwwww wwwwdwwwww wwwdddwwww "
            "ddwddwwwww odwddwwwww dddddwwwww odwwwwwwoo dddwwwwooo",
            "wddddddddd wddddddddd wwwdddwwww ddwwddwwww ddwwddwwww "
            "ddwddwwwww odddwwwwww dddwdwwwww oddddddddd dddddddooo",
            "wddddddddd ddddddddww dwwwwwwwww ddwwdwwwww dwwwddwwww "
            "dwwddwwwww odddwwwwww ddddwwwwww ddddwddddo ddddwddood",
            "wddddddddd dddddddwww dwwdwwdwww ddwddwdwww ddwdddwwww "
            "ddwddwwwww odddwwwwww ddddwwwwww dddddddwdd ddddwddwdd",
        },
        {
            "wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd wwwwwwdddd wwwwwddddd "
            "wwwwdddddd wwdddddddd wddddddddd dddddddddd dddddddddd",
            "wwwwwddddd wwwwwwwddd wwwwwwwwdd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wwwwdddddd wwwddddddd dwdddddddo ddddwdoooo",
            "wwwddddddd wwwwwwdddd wwwwwwwddd wwwwwwwddd wwwwwddddd "
            "owwwdddddd odwwdddddw ddwddddddd ddddddddwo dddddddooo",
            "wddddddddd wwwwwddddd wwwwwwdddd wwwwwddddd owwwdddddd "
            "owwddddddd ddwddddddw dwwddddddd dddddddddd dddddddodo",
            "wddddddddd wwwwdddddd wwwwdddddd wwwwdddddd owwddddddd "
            "owwddddddd oddddddddd ddwddddddd dddwdddddd ddwwdddddd",
            "dddddddddd wwdwdddddd wwwddddddd wwwddddwdd owwddddddw "
            "ddwddwdwww ddwddddddw dddwdddwdd ddddwddddd dwwwwdwddd",
            "dddddddddd wddddddddd wddddddddd ddwddddddd ddwdddwddd "
            "ddwddddddd ddddwwwwww ddddwowdow dddwwwwwoo dwwwwwoooo",
            "dddddddddd ddddoddddd wdwddddddd dddddddddd dddddddddd "
            "dddddddwww ddddwwwwww dddwwwwwoo ddddddwood ddddwddooo",
            "dddddddddd dddddddddd dddddddddw dddddddddd ddwddddddd "
            "dddddwwdww dddddwwwww ddddwdwooo ddddwdwood ddddwddwoo",
            "dddddddddd ddddddddoo ddwdddddww dddddddddd ddwddddddd "
            "dddddwwwww ddddwwwwww ddddddwodo ddddwwdwoo ddddwwdwod",
        },
        {
            "wwwddddddd wwwddddddd wwwwdddddd wwwwdddddd wwwwdddddd "
            "wwwwdddddd wwwddddddd wwwddddddd wwdddddddd wddddddddd",
            "wwwddddddd wwwwwodddd wwwwwwwwwd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwdwwwwww wwddwwwwww wddwwwwwww",
            "wwdddddddd wwwwdddddd wwwwwwwwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwdwwwwww wdddwwwwww wdddwwwwww",
            "wddddddddd wwwwdddddd wwwwwwwddd wwwwwwwddw owwwwwddww "
            "owwwwwwwww owwwdwwwww oddddwwwww dwddwwdwow ddddwwwwww",
            "wddddddddd wwwddddddd wwwwdwdddd wwwwddddww owwwdwdwww "
            "owwwdwwwww dwwddwwwww dddddwwwww dddddwwwww ddddwwwwww",
            "dddddddddd wddddddddd wwwddwdddd wwwddddwww dwwwdddwww "
            "dwwdddwwww odwddwwwww ddwwdwwwww dowdwwwwow dwwwwwwwww",
            "dddddddddd wddddddddd wwdddwdddd dwwwdwwddw dwwwdwdwww "
            "dwwwdwwoww dwdwwwwwww ddddwwowww ddwwwwwooo dwwwwwoooo",
            "dddddddddd dddddddddd dddddddddd dwwddodddw wwwdddwwww "
            "ddwwdwwwww odddwwwoww dddwwwwwoo odddddddod ddddwddood",
            "dddddddddd dddddddooo dwddddddww dwwddddddd dwwwddwddw "
            "ddwwdwwwww odddwwwwww ddddddddod odddwddddd dddddddwod",
            "dddddddddd ddddddddod dwwdddddwd dwwddddddd dwwwdddwwd "
            "ddwwdwwwww odddwwwwww ddddddwooo dddddddwdd dddddddwdd",
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
