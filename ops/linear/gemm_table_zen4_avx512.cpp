// The majority of three runs of flow-calibrate source on AMD EPYC (zen4 avx512) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64;
// depth 512.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableZen4Avx512 = {{
    {
        {
            "wwwwwwwwww wwwwwwwooo wwwwwwwooo wwwwwwwooo wwwwwwoood "
            "owwowooddd owoooooddd oooooddwww oooddddwww ooodddwwww",
            "woowwwwwww wwwwwwoooo wwwwwwwooo wwwwwwwood wwwwwwoood "
            "wwwwwooodd woowooodww oooooodwww ooooodwwww oooodwwwww",
            "woowwwwwww wwwwwooooo wwwwwwwooo wwwwwwwodd wwwwwooodd "
            "woowwooddd woooooddww oooooddwww ooooddwwww oooddwwwww",
            "woowwwwwww wwwwwooooo wwwwwwwooo wwwwwwwodd wwwwwooodd "
            "wooowowddd ooooodwwww oooodddwww ooodddwwww oodddwwwww",
            "woowooooow wwwwwooooo wwwwwwwood wwwwwwwddd wwwwoooddd "
            "wooowddddd oooodddddd oooddddddd ooddwddddd owwwwddddd",
            "woowooooow wwwwooooww wwwwwwwwdd wwwwwwwddd ooooowwwdd "
            "ooowwwdddd ooowdddddd oowddddddd odwwwwdddd owwwwddddd",
            "wwwwooooww oowwooowww wowwwwwwdd wwwwwwwddd oooowwwwdd "
            "ooowwdwwdd oowwdddwdd owwddddddd odwwwwwddd odwwwwdddd",
            "wwwwooooww wwwwoowwww oowwwwwwdd wwwwwwwwdd woowwwwwdd "
            "oowwwwwwdd owwwwwwwdd oddddwwwdd odwwwwwwdd dwwwwwwwdd",
            "wwwwooowww wwwwoowwww owwwwwwwdd wwwwwwwwdd wowwwwwwdd "
            "owwwwwwwdd owwwwwwwdd oddddwwwdd ddddwwwwdd ddddwwwwww",
            "wwwwoowwww wwwwwwwwww owwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "dwwwwwwwdd owddwwwwdd dddwwwwwdd ddddwwwwww ddwwwwdwww",
        },
        {
            "woowwwwwww woowwwwwww woowwoowoo wwowwoowoo wwwwoooooo "
            "wwwwooooow wwwwooowww wwwwooowww wwwwooowww wwwwwwwwww",
            "woowwwwwwo woooooooow woooooooow wwwooooooo wwwoooooow "
            "wwwoooooww wwwwddwwww wwwwddwdww wwwwddwwww wwwwdwwdww",
            "woowoooooo wooooooooo woooooooow wwwoooooow wwwwooooww "
            "wwwwwddwww wwwwwddwww wwwwwddwww wwwwwdddww wwwwwwddww",
            "wwowoooooo wooooooooo wooooooooo wwwwooooww wwwwwoowww "
            "wwwwwoowww wwwwddwwww wwwdddwdww wwddddwdww wwwwwwwwww",
            "wwowoooooo woooooooow wwwooooood wwwwwwwooo wwwwwwoooo "
            "wwwwwwwwoo wwwwwwwwwo wwwdddwwdo wwdddddwdw wwwwwwwwww",
            "wwwwooooow wwooooooww wwwwowdddd wwwwwwwood wwwwwwoooo "
            "wwwwwwwwod wwwwwwwwdo wwwdddwwdo dddddddddw dddwwwwwww",
            "wwwwooooow wwwooowwww wwwwwwwwdd wwwwwwwwdd wwwwwwowoo "
            "wwwwwwwwdd wwwwwwwwdo dwwdwwwwoo dddwwwwwww ddddwwwwww",
            "wwwwooooww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwdd "
            "wwwwwwwwdd wdwwwwwwdo dddddwwwoo ddddwwwwww ddddwwwwww",
            "wwwwooowww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwww "
            "wwwwwwwwdd ddwwwwwwdd dwwwwwwwoo ddddwwwwww dddwwwdwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwdd wwwwwwwwdd wwwwwwwwww "
            "dwwwwwwwdd ddwwwwwwdd ddwwwwwwdd dddwwwwwww dwwwwwdwwd",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww wwwwwwoodd "
            "wwwwwooddd oooooooddd wwwooddwww oooodddwww ooodddwwww",
            "wwwwwwwooo wwwwwwwooo wwwwwwwooo wwwwwwwood wwwwwwoood "
            "wwwwwooodd wowwoooddw wwwooddwww wwooodwwww oddddwwwww",
            "wwwwwwwooo wwwwoooooo wwwwwwwooo wwwwwwwodd wwwwwwoodd "
            "wwwwwodddd ooowoodddw owwooddwww ooooddwwww oooddwwwww",
            "wwwwwwwooo wwwwoooooo owwwwwwooo wwwwwwwodd wwwooooddd "
            "wwwwwodddd oooooddddw oowodddwww ooodddwwww oddddwwwww",
            "wwwwwwoood wwwwoooooo owwwwwwood wwwwwwwddd wooooooddd "
            "wwwwoddddd oooodddddw oooddddddd oddddddddd oddddddddd",
            "wwwwoooodd wwwooooood oowwwwwodw wwwwwwwddd woooowdddd "
            "wwwowddddw ooowdddddw oowddddddd oddddddddd oddddddddd",
            "wwwwoooddd wwwoooooww oowoowwwww wwwwwwwddd oooowwwwww "
            "ooowwwwdww oowwwdddww owwddwdddd oddddwdddd oddddddddd",
            "wwwooodoww wwwoooodww ooowwwwwww wwwwwwwddd ooowwwwwdd "
            "oowwwwdddd owwwwwwwww oddwwwwddd odddwwwddd ddddwddddd",
            "wwoddddwww wwwooowwww oowwwwwwww wwwwwwdwdd oowwwwwwww "
            "owwwwwwwww odwwwwwwww oddwwwwwww ddddwwwdwd dddwwwwddw",
            "woddddwwww wwwoowwwww oowwwwwwww wwwwwddwww owwwwowwww "
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
            "wwwooowwwo wwwwwwwwww wwwwwwwwww wwwwwwwwww ddwwwwwoww",
            "wwwwoooodd wooooooood wooooooodd woooooooow wwooooooow "
            "wwwwwwwoww wwwwwwwwww wwwwwwwwwo dwwwwwwwww ddwwwwwwww",
            "wwwwoooddd wooooooood wwooooodwd wwwooowdww wwwoowwoww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww dwdwwwwwww dddwwwwwww",
            "wwwooddwww woooooodwd wwwoowwddd wwwwwwwddd wwwwwwowww "
            "wwwwwwwwww wwwwwwwwww dwddwwwwww ddddwwwwww ddddwwwwww",
            "wwoddddwww wooooowwww wwwowwwwww wwwwwwdwww wwwwwwwwww "
            "wwwwwwwwww dwwwwwwwww dwwwwwwwww ddddwwwwww dddwwwwwwd",
            "woddddwwww woooowwwww wwwwwwwwww wwwwwddwww wwwwwowwww "
            "ddwwwwwwww dddwwwwwww dwdwwwwwww ddwwwwwdww dwwwwwwwwd",
        },
    },
    {
        {
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwwoooo "
            "ooooooooow ooooooooww oooooowwww ooooowwwww ooooowwwww",
            "wowwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "wwwwwoooww wwwwooowww wwwooowwww oooooowwww ooooowwwww",
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
            "woooooowww woowoowwww wowwwwwwww wooowwwwww ooowwwwwww "
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
            "wwwoooooww wwwwowwwww wwwoowwwww wwwooowwww wwoooowwww",
            "wwwwoowooo wwwwooooow wwwwooooow wwwwooooow wwwwooooww "
            "wwwwwowwww wwwwoowwww wwwoooowww wwwoooowww wwwoooowww",
            "wwwwoooooo wwwwooooow wwwwwwwooo wwwwwowoww wwwwwwwwww "
            "wwwwwwwwww wwwwooowww wwwoooowww wwwoooowww wwwwooowww",
            "wwwwooooow wwwwwwooow wwwwwwwoow wwwwwwwwww wwwwwwwoow "
            "wwwwwwwoow owwwwwwooo wwwwwwoooo wwwwwooooo wwwwoooooo",
            "wwwwooooww wwwwwwooww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwoww owwwwwwooo wwwwwwoooo wwwwwooooo wwwwwooooo",
            "wwwwooowww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwooo wwwwwwwooo wwwwwwoooo wwwwwooooo",
            "wwwwoowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww wwwwwwwwoo",
            "wwwwoowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwwo wwwwwwwooo wwwwwwwwww wwwwwwwwwo",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww owwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwwoooo "
            "owooooooow oowoooowww ooooooowww ooooowwwww ooooowwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "wwwwwoooww wwwwooowww wwwooowwww owooowwwww ooooowwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwoow wwwwwwowww "
            "owwwwoowww oowwoowwww oowwwwwwww ooowwwwwww owowwwwwww",
            "wwwwwwoooo owwwwwwwoo wwwwwwwwow wwwooowoww wwwwwwowww "
            "oooowowwww ooooowwwww ooooowwwww oooowwwwww ooowwwwwww",
            "wwwooooooo owwwwwowow wwwwwwwwow ooooooooww oooooowwww "
            "ooooowwwww ooooowwwww oooowwwoow oowwwwoooo owwwwooooo",
            "wwooooooow oowwwwwwww wwwwwwwwww oooooowwww ooooowwwww "
            "oooowwwwww ooowwwwwww ooowwwwwww oowwwwwoww owwwwooooo",
            "wwooooowww oooowwwwww wwwwwwwwww ooooowwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww oowwwwwwww owwwwwwwww owwwwwwooo",
            "wwoooowwww ooooowwwww wwwwwwwwww oooowwwwww ooowwwwwww "
            "oowwwwwwww owwwwwwwww owowwwwwww owwwwwwwww owwwwwwwww",
            "wwooowwwww ooooowwwww wwwwwwowww ooowwwowww oowwwowwww "
            "owwwwwwwww owwwwwwwww ooowwwwwww oowwwwwwww wwwwwwwwww",
            "woooowwwww ooowwwwwww wwwwwwwwww oowwwwwwww owwwoowwww "
            "owwwwwwwww owwwwwwwww ooowwwwwww wowwwwwwww owwwwwwwww",
        },
        {
            "woowwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww",
            "wwwwwwwwoo wooooooooo wooooooooo wooooooooo woooooooow "
            "woooooooww woooooowww woooooowww wooooowwww wooooowwww",
            "wwwwwwwwoo wooooooooo wwoooooooo woooooooow woooooooww "
            "woooooowww woooooowww wwooooowww wwooooowww woooooowww",
            "wwwwwwoooo wwwooooooo wwwooooooo wwooooooow wwooooowww "
            "wwwoooowww wwooooowww wwwoooowww wwooooowww wwwoooowww",
            "wwwooooooo wwwwoooooo wwwoooooow wwooooooww wwooooowww "
            "wwwoowwwww wwwoowwoow wwwowwoooo wwwwwooooo wwwwoooooo",
            "woooooooow wwwwooooww wwwwooowww wwoooowwww wwwoowwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwooww wwwwwwoooo wwwwwooooo",
            "woooooowww wwwwwoowww wwwwoowwww wwwoowwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwowww wwwwwwoooo",
            "wwoooowwww owwooowwww wwwwowwwww wwwowwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwwo",
            "woooowwwww owwoowwwww wwwwwwwwww wwwwwwowww wwwwwowwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "woooowwwww wwwowwwwww wwwwwwwwww wwwwwowwww wwwwwowwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wowwwwwwww owwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
