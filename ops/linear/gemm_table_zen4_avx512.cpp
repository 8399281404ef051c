// The majority of three runs of flow-calibrate source on AMD EPYC (zen4 avx512) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64;
// depth 512. Of few rows or columns and 1 MiB, the choice of a run that reads operands from memory
// and from the cache in turns.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableZen4Avx512 = {{
    {
        {
            "wwwwwwwwww wwwwwwwooo wwwwwwwooo wwwwwwwooo wwwwwwoood "
            "owwowooddd owoooooddd ooooodddww oooddddwww ooodddwdww",
            "woowwwwwww wwwwwwoooo wwwwwwwooo wwwwwwwood wwwwwwoood "
            "wwwwwooodw woowooodww oooooodwww ooooodwwww oooodwwwww",
            "woowwwwwww wwwwwooooo wwwwwwwooo wwwwwwwodd wwwwwooodd "
            "woowwooddw woooooddww oooooddwww oooodddwww ooodddwwww",
            "woowwwwwww wwwwwooooo wwwwwwwooo wwwwwwwodd wwwwwooodd "
            "wooowowddw ooooodwwww oooodddwww ooodddwwww oodddwwwww",
            "woowooooow wwwwwooooo wwwwwwwood wwwwwwwddd wwwwoooddd "
            "wooowddddd oooodddddd oooddddddd ooddwddddd owwwwddddd",
            "woowooooow wwwwooooww wwwwwwwwdd wwwwwwwddd ooooowwwdd "
            "ooowwwdddd ooowdddddd oowddddddd odwwwwdddd owwwwddddd",
            "wwwwooooow oowwooowww wowwwwwwdd wwwwwwwddd oooowwwwdd "
            "ooowwdwwdd oowwdddwdd owwddddddd odwwwwwddd odwwwwdddd",
            "wwwwooowww wwwwoowwww oowwwwwwdd wwwwwwwwdd woowwwwwdd "
            "oowwwwwwdd owwwwwwwdd oddddwwwdd odwwwwwwdd dwwwwwwwdd",
            "wwwwooowww wwwwoowwww owwwwwwwdd wwwwwwwwdd wowwwwwwdd "
            "owwwwwwwdd owwwwwwwdd oddddwwwdd ddddwwwwdd ddddwwwwww",
            "wwwwooowww wwwwwwwwww owwwwwwwdd wwwwwdwwdd wwwwwwwwdd "
            "dwwwwwwwdd owddwwwwdd dddwwwwwdd ddddwwwwww ddwwwwdwww",
        },
        {
            "woowwwwwww woowwwwwww woowwoowoo wwowwoowoo wwwwoooooo "
            "wwwwooooow wwwwooowww wwwwooowww wwwwoowwww wwwwwwwwww",
            "woowwwwwwo woooooooow woooooooow wwwooooooo wwwoooooow "
            "wwwoooooww wwwwddwwww wwwwddwdwd wwwwdddddd wwwwdddddw",
            "woowoooooo wooooooooo woooooooow wwwoooooow wwwwooooww "
            "wwwwwddwww wwwwwddwww wwwwwddwww wwwwwddwww wwwwwwdwww",
            "wwowoooooo wooooooooo wooooooooo wwwwooooww wwwwwoowww "
            "wwwwwoowww wwwwddwwww wwwdddwwww wwddddwwww wwwwwwwwww",
            "wwowoooooo woooooooow wwwooooood wwwwwwwooo wwwwwwoooo "
            "wwwwwwwwow wwwwwwwwww wwwdddwwdo wwddddwwww wwwwwwwwww",
            "wwwwooooow wwooooooww wwwwowdddd wwwwwwwoow wwwwwwoooo "
            "wwwwwwwwod wwwwwwwwdo wwwdddwwdo dddddddddw dddwwwwwww",
            "wwwwooooww wwwooowwww wwwwwwwwdd wwwwwwwwdd wwwwwwowow "
            "wwwwwwwwdd wwwwwwwwdo dwwdwwwwoo dddwwwwwww ddddwwwwww",
            "wwwwooowww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwww "
            "wwwwwwwwdd wdwwwwwwdo dddddwwwoo ddddwwwwww ddddwwwwww",
            "wwwwooowww wwwwwwwwww wwwwwwwwdd wwwwwwwwwd wwwwwwwwwd "
            "wwwwwwwwdd ddwwwwwwdd dwwwwwwwoo ddddwwwwww dddwwwdwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdw wwwwwwwwww "
            "dwwwwwwwdd ddwwwwwwdd ddwwwwwwdd dddwwwwwww dwwwwwdwwd",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww wwwwwwoodd "
            "wwwwwooddd oooooooddd wwwoodddww oooodddwww oooddddwww",
            "wwwwwwwooo wwwwwwwooo wwwwwwwooo wwwwwwwood wwwwwwoood "
            "wwwwwooodd wowwoooddd wwwooddwww wwooodwwww oddddwwwww",
            "wwwwwwwooo wwwwoooooo wwwwwwwooo wwwwwwwodd wwwwwwoodd "
            "wwwwwodddd ooowoodddw owwooddwww ooooddwwww oooddwwwww",
            "wwwwwwwooo wwwwoooooo owwwwwwooo wwwwwwwodd wwwooooddd "
            "wwwwwodddw ooooodddww oowodddwww ooodddwwww oddddwwwww",
            "wwwwwwoood wwwwoooooo owwwwwwood wwwwwwwddd wooooooddd "
            "wwwwoddddd oooodddddd oooddddddd oddddddddd oddddddddd",
            "wwwwoooodd wwwooooooo oowwwwwodw wwwwwwwddd woooowdddd "
            "wwwowddddw ooowdddddw oowddddddd oddddddddd oddddddddd",
            "wwwwoooddd wwwoooooww oowoowwwww wwwwwwwddd oooowwwwww "
            "ooowwwwdww oowwwdddww owwddwdddd oddddwdddd oddddddddd",
            "wwwoooddww wwwoooooww ooowwwwwww wwwwwwwddd ooowwwwwdw "
            "oowwwwdddd owwwwwwwww oddwwwwddd odddwwwddd ddddwddddd",
            "wwoddddwww wwwooowwww oowwwwwwww wwwwwwdwwd oowwwwwwww "
            "owwwwwwwww odwwwwwwww oddwwwwwww ddddwwwdwd dddwwwwddw",
            "woddddwwww wwwoowwwww oowwwwwwww wwwwwddwdd owwwwwwwww "
            "dddwwwwwww oddwwwwwww dddwwwwwww ddwwwwwwww dwwwwwwwww",
        },
        {
            "woowwwwwww woowwwwwww woowwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwooo wooooooooo wooooooooo wooooooooo wwooooooow "
            "wwwooowwww wwwwoowwww wwwwwowwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwooo wooooooooo wooooooooo wooooooooo wwooooooww "
            "wwooooowww wwwoooowww wwwooowwww wwooowwwww wwwwwwwwww",
            "wwwwwwwooo wooooooooo wooooooooo wooooooooo wwooooooww "
            "wwooooowww wwwooowwww wwwowwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwoood wooooooooo wooooooood wwoooooooo wwoooooooo "
            "wwwooowwww wwwwwwwwww wwwwwwwwwo wwwwwwwwwo ddwwwwwwww",
            "wwwwoooodo wooooooooo wooooooodd woooooooow wwooooooow "
            "wwwwwwwoww wwwwwwwwww wwwwwwwwwo dwwwwwwwww ddwwwwwwww",
            "wwwwoooddd woooooooow wwoooooddw wwwooowdww wwwoowwoww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww dwdwwwwwww dddwwwwwww",
            "wwwoodddww wooooooodw wwwoowwwwd wwwwwwwddd wwwwwwowww "
            "wwwwwwwwww wwwwwwwwww dwddwwwwww ddddwwwwww ddddwwwwww",
            "wwoddddwww wooooowwww wwwowwwwww wwwwwwdwww wwwwwwwwww "
            "wwwwwwwwww dwwwwwwwww dwwwwwwwww ddddwwwwww dddwwwwwwd",
            "woddddwdww woooowwwww wwwwwwwwww wwwwwddwww wwwwwwwwww "
            "ddwwwwwwww dddwwwwwww dwdwwwwwww ddwwwwwdww dwwwwwwwwd",
        },
    },
    {
        {
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwwoooo "
            "ooooooooow ooooooowww oooooowwww oooooowwww ooooowwwww",
            "wowwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "wwwwwoooww wwwwooowww wwwooowwww ooooowwwww oooowwwwww",
            "wowwwwwwww wwwwwooooo owwwwwwwoo owwwwoooow wwwwwwooww "
            "oooowoowww oowwoowwww owooowwwww ooooowwwww oooowwwwww",
            "woowwwwoow wwwwwooooo wwwwwwwwoo owwwooooow wwwwwwowww "
            "ooowwowwww ooooowwwww ooooowwwww oooowwwwww ooowwwwwww",
            "woooooooow wwwwwoooow wwwwwwwwow wowoooooow ooowowowww "
            "oooooowoww ooooowwooo oooowwwooo ooowwooooo owwwwooooo",
            "woooooooww owwwwoooww wwwwwwwwww wwwooowwww ooooowwwww "
            "oooowwwoww ooowwwwooo ooowwwwooo oowwwooooo owwwwooooo",
            "woooooowww owwwwoowww woowwwwwww ooooowwwww oooowwwwww "
            "ooowwwwoww oowwwwwooo oowwwwwooo owwwwwwoow owwwwwowoo",
            "wooooowwww woowoowwww wowwwwwwww wooowwwwww ooowwwwwww "
            "oowwwwwwww owwwwwwwww owwwwwwooo owwwwwwwww owwwwwwwoo",
            "wooooowwww oowwwwwwww wwwwwwwwww woowwwwwww oowwwwwwww "
            "owwwwwwwww owwwwwwwww owwwwwwooo wwwwwwwwww wwwwwwwwww",
            "woooowwwww oowwwwwwww wwwwwwwwww oowwwwwwww owwwwwwwww "
            "owwwwwwwww owwwwwwwww ooowwwwooo wowwwwwwww owwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwow wwwwwwwooo wwwwwwwoow wowwwwooow "
            "wowwooooww wowwooowww wowwoowwww wowwowwwww wowwwwwwww",
            "wwwwwwwwow wwwwoowowo wwwwooooow wwwwooooww wwwoooooow "
            "wwwoooooww wwwwowwwww wwwoowwwww wwwoowwwww wwooowwwww",
            "wwwwoowooo wwwwooooow wwwwooooow wwwwooooow wwwwooooww "
            "wwwwwowwww wwwwoowwww wwwooowwww wwwoooowww wwwoooowww",
            "wwwwoooooo wwwwooooow wwwwwwwooo wwwwwowoww wwwwwwwwww "
            "wwwwwwwwww wwwwooowww wwwoooowww wwwoooowww wwwwooowww",
            "wwwwooooow wwwwwwooow wwwwwwwoow wwwwwwwwww wwwwwwwoow "
            "wwwwwwwooo owwwwwwooo wwwwwwoooo wwwwwooooo wwwwoooooo",
            "wwwwooooww wwwwwwooww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwoww owwwwwwooo wwwwwwoooo wwwwwooooo wwwwwooooo",
            "wwwwooowww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwooo wwwwwwwooo wwwwwwoooo wwwwwooooo",
            "wwwwooowww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww wwwwwwwwoo",
            "wwwwoowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwwo wwwwwwwooo wwwwwwwwww wwwwwwwwwo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww owwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwwoooo "
            "owooooooow oowoooowww oooooowwww oooooowwww ooooowwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "wwwwwoooww wwwwooowww wwwooowwww owooowwwww oooowwwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwoow wwwwwwowww "
            "owwwwoowww oowwoowwww oowwwwwwww ooowwwwwww owowwwwwww",
            "wwwwwwoooo owwwwwwwoo wwwwwwwwow wwwooowoww wwwwwwowww "
            "oooowowwww ooooowwwww ooooowwwww oooowwwwww ooowwwwwww",
            "wwwooooooo owwwwwowow wwwwwwwwow ooooooooww oooooowwww "
            "ooooowwwww ooooowwwww oooowwoooo oowwwwoooo owwwwooooo",
            "wwooooooow oowwwwwwww wwwwwwwwww oooooowwww ooooowwwww "
            "oooowwwwww ooowwwwwww ooowwwwwww oowwwwwoww owwwwooooo",
            "wwooooowww oooowwwwww wwwwwwwwww ooooowwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww oowwwwwwww owwwwwwwww owwwwwwooo",
            "wwooooowww ooooowwwww wwwwwwwwww oooowwwwww ooowwwwwww "
            "oowwwwwwww owwwwwwwww owowwwwwww owwwwwwwww owwwwwwwww",
            "wwoooowoww ooooowwwww wwwwwwwwww ooowwwwwww oowwwwwwww "
            "owwwwwwwww owwwwwwwww ooowwwwwww oowwwwwwww wwwwwwwwww",
            "woooowwwww ooowwwwwww wwwwwwwwww oowwwwwwww owwwwwwwww "
            "owwwwwwwww owwwwwwwww ooowwwwwww wowwwwwwww owwwwwwwww",
        },
        {
            "woowwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww",
            "wwwwwwwwoo wooooooooo wooooooooo wooooooooo woooooooow "
            "woooooooww woooooowww wooooowwww wooooowwww woooowwwww",
            "wwwwwwwwoo wooooooooo wwoooooooo woooooooow woooooooww "
            "woooooowww woooooowww wwoooowwww wwoooowwww wooooowwww",
            "wwwwwwoooo wwwooooooo wwwooooooo wwooooooow wwooooowww "
            "wwwoooowww wwooooowww wwwoooowww wwooooowww wwwoooowww",
            "wwwooooooo wwwwoooooo wwwoooooow wwooooooww wwooooowww "
            "wwwoowwwww wwwoowwoow wwwowwoooo wwwwwooooo wwwwoooooo",
            "wooooooooo wwwwooooww wwwwooowww wwoooowwww wwwoowwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwooww wwwwwwoooo wwwwwooooo",
            "woooooowww wwwwwoowww wwwwoowwww wwwoowwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwoooo",
            "wwoooowwww owwooowwww wwwwowwwww wwwowwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwwo",
            "wooooowwww owwoowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "woooowwwww wwwowwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wowwwwwwww owwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
