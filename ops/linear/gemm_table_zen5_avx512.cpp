// Written by flow-calibrate source on AMD EPYC (zen5 avx512) with
// oneDNN 2.6.3, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableZen5Avx512 = {{
    {
        {
            "wwowwwwwww wwwwwwoooo wwwwwwwooo owwwwwwooo wwwwwwoooo "
            "wwwwwowwdd owooowwddw ooooodddww oooodddwww ooodddwwww",
            "woowwwwwww wwwwwwoooo wwwwwwwodd wwwwwwwodd wwwwwwoood "
            "wwwwwooddw owwwooddww owwooodwww owooddwwww oooddwwwww",
            "woowwwwwww wwoooooooo wwwwwwwodd wwwwwwwddd wwwwwwoodd "
            "wwwwwooddw ooooowddww owoooddwww ooowdddwww owdddwwwww",
            "woowwwwwww owoooooooo wwoooooodd wwwwwwwddd wwwwwwoddd "
            "owwwwodddd owwwodddww oooodddwww ooowwdwwww owdwdwwwww",
            "wowwwwwwww owooooooow wwoooooddd wwwwwwwddd wwwwwwwddd "
            "oowwwddddd oooodddddd oooodddddd oowwwddddd owwwdddddd",
            "wwwwooowww owooooooww owoooooddd wwwwwwwddd owwwwwwwdw "
            "oowwwddddd ooowdddddd oowddddddd oowwwwdddd owwwwddddd",
            "wwwwooooow owooooowww owoooodwdd owwwwwwddw owwwwwwwww "
            "ooowwddddd oowwdwdddd oowddddddd odwwwwwddd owwwwwdddd",
            "wwwwooooww oooooowwww owoooddddd wwwwwwwwww owwwwwwwww "
            "oowwwwwwww odwwwwwwdd odddwwdddd odwwwwwddd owwwwwwddd",
            "wwwwooooww owooowdddw owoodddddd wwwwwwdwww owwwwwwwww "
            "odwwwwwwww odwwdwwwww oddddwwwdd ddddddwddd dwdddddddd",
            "wwwwooowww oooooddddd owoddddddd wwwwwddwww owwwwwwwww "
            "oddwwwwwww odwwdwwwww ddddwwwwww dddddddddd dwdddddddd",
        },
        {
            "woowwwwwww wowwwwwwww wowwwwwwww wwwwwwwwww wwwwwwwwow "
            "wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wowwowwwww woowooooow woooooooww wwoooooooo wwooooooow "
            "wwooooooww wwodwwwwww wwwddwwwww wwwddwddww wwdddddwww",
            "woowooowww woooooooww woooooooww wwooooooww wwooooooww "
            "wwoodwwwww wwooddwwww wwodddwwww wwddddwwww wwoooodwww",
            "wwwwoowwow woooooowww wwooooowww wwwwooooow wwwwwwwwww "
            "wwwwwwwwww wwwwwdwdww wwwwdddwww wdwdddwwww dwwwwwwwww",
            "wwwwooooow wwooooowww wwooooowww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww dwwddddwww dddddddwdo dwwwwwwwww",
            "wwwwoooooo wwooooowww wwoodwwwwd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww dwwddwwwww ddddddwwww dwwwwwwwww",
            "wwwwooooow wwoowwwwww wwoddddwdd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwwd wwwwwwwwww dwwdwwwwow ddwwwwwooo dwwdwwwwoo",
            "wwwwooooww wwoddwwwwd wwdddddddd wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww dwwdwwwwww ddwdwwwwwo dwwddwwwwo",
            "wwwwoowoww wwdddwddww wwdddddddd wwwwwwdwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww ddwdwwwwww dddddwwwwo dwdddddddd",
            "wwwwwwwwww wwdddddddd wwdddddddd wwwwwddwww wwwwwwwwww "
            "wwwwwwwwww dwwwwwwwww ddwdwwwwww ddddddwddd dwdddddddd",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwwwww wwwwwwoood "
            "wwwwwowwdd ooooowwdww owoowdddww oooodddwww ooodddwwww",
            "wwwwwwwooo wwwwwwwodd wwwwwwwood wwwwwwwodd wwwwwwoood "
            "wwwwwooddd owwwooddww wwwooddwww owooddwwww oooddwwwww",
            "wwwwwwwooo wwwwwooooo wwwwwwwodd wwwwwwwddd wwwwwwoddd "
            "wwwwwodddw oowwowddww oowodddwww ooowddwwww oodddwwwww",
            "wwwwwwwooo wwwwoooooo wwwwwwwood wwwwwwwddd wwwwwwoddd "
            "wwwwwodddd ooowodddww oooodddwww oodwdwwwww owdddwwwww",
            "wwwwwwoooo wwwwoooooo owwwwwwodd wwwwwwwddd wwwwwowwdd "
            "wwwwoddddd oooodddddd oooodddddd oddddddddd owdddddddd",
            "wwwwoooood wwwooooood oowwwwwddd wwwwwwwddd owwwowwwww "
            "wowwwwwddw ooowdddddw oowwdddddd oddddddddd dwdddddddd",
            "wwwwowwddw wwwooooodw ooooowwddw wwwwwwwddw oowwwwwwww "
            "oowwwwwwww oowwwwddww oodwwwdddd oddddddddd owdddddddd",
            "wwwowdddww wwwoooodww ooooowwdww wwwwwwwddd oowwwwwwww "
            "oowwwddwww odwwwwwwww oddwwwwwww oddddwwddd dwdddwdddd",
            "wwoddddwww wwwooowwww oooowwwwww wwwwwwwwww oowwwwwwww "
            "dddwwwwwww oddwwwwwww oddwwwwwww dddddwwwww dwddddwddd",
            "wwddddwwww wwwoowwwww oooowwwwww wwwwwwwwww owwwwwwwww "
            "dddwwwwwww oddwwwwwww dddwwwwwww dddddwwwww dwdddddddd",
        },
        {
            "woowwwwwww woowwwwwww wowwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww",
            "wwwwwwwooo wooooooooo wooooooooo wwoooowwww wwooowwwww "
            "wwooowwwww wwooowwwww wwooowwwww wwooowwwww wwoowwowww",
            "wwwwwwwooo wooooooooo wooooooooo wwoooooooo wwooooooww "
            "wwooooowww wwoooowwww wwoooowwww wwooowwwww wwooooowww",
            "wwwwwwwooo wooooooooo wooooooooo wwooooooow wwooooowww "
            "wwwooowwww wwwoowwwww wwwwwwwwww wwwwwwwoww dwwwwwwwww",
            "wwwwwwoooo wooooooooo wooooooood wwooooooww wwwooowwww "
            "wwwwowwwww wwwwwwwwww owwwwwwwww wdwwwwwowo dwwwwwwwww",
            "wwwwooowdd wooooooood wooooooodd wwwooowdww wwwoowwwww "
            "wwwwwwwwww wwwwwwwwww dwwwwwwwww ddwwwwwwww dwwwwwwwww",
            "wwwwowwdww wooooooodw wooooodddw wwwoowwdww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww dwwwwwwwww ddwwwwwooo dwwdwwwooo",
            "wwwowdddww wooooooddd woooowddww wwwwwwwdwd wwwwwwdwww "
            "wwwwwddwww wwwwwwwwww ddwdwwwwww ddwdwwwwwo dwwdwwwwoo",
            "wwoddddwww wooooowwww wwoowwwwww wwwwwwwwww wwwwwwwwww "
            "wddwwwwwww wwwwwwwwww ddwwwwwwww ddddwwwwww dwdddddddd",
            "wwddddwwww woooowwwww wwowwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww dwwwwwwwww dwwwwwwwww dddddwwwww dwdddddddd",
        },
    },
    {
        {
            "owwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwoowwo "
            "owooowwwww ooooowwwww oooooowwww oooooowwww ooooowwwww",
            "woowwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "owwwwowwww owwwooowww owwooowwww owooowwwww oooowwwwww",
            "wowwwwwwww owoooowwoo wwwwwwwwoo owwwwowoow owwwowwwww "
            "oooowwwwww ooowowwwww oowwwwwwww ooowwwwwww owowwwwwww",
            "woowwwwwww wwoooowwoo wwooooooow owwwwwwoww oowwowowww "
            "oooowwwwww ooowowwwww ooowwwwwww oooowwwwww owowwwwwww",
            "wooowwwwww wwoooowwww wwoooowoww owwwwwwwww oowwowwwww "
            "oooowwwwww ooowwwwwww oooowwwwww oowwwwwwww oowwwwwwww",
            "woooooooww owoooowwww wwoooowwww owwwwwwwww ooowowwwww "
            "oooowwwwww ooowwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "woooooooww owoooowwww owoooowwww owwwwwwwww ooowwwwwww "
            "ooowwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "wooooowoww owoooowwww wwooowwwww owwwwwwwww ooowwwwwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "woooowwwww owooowwwww wwoowwwwww owwwwwwwww oowwwwwwww "
            "owwwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "wooowwwwww owooowwwww wwoowwwwww owwwwwwwww owwwwwwwww "
            "owwwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww wwwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwwo wowwwwwoww wowwwwwoww wowwwwooww wowwwwwwww",
            "wwwwwwwwww wwwwoowwww wwwwoowwww wwwoooowww wwwoooooww "
            "wwwoooooww wwwwwwwwww wwwwwwwwww wwowwwowww wwowwoowww",
            "wwwwowwwww wwwwoowwww wwwwoowwww wwwoooowww wwwoooowww "
            "wwwowwwwww wwoowwwwww wwoowwwwww wwoowwowww wwooooowww",
            "wwwwwwwoww wwwooowwww wwwooowwww wwwwwoooow wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww oowwwwoooo oowwwooooo owwwoooooo",
            "wwwwwoooww wwwooowwww wwwoowwoww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww oowwwwwwww oowwwwowww owwwwowwww",
            "wwwwooooww wwwooowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww oowwwwwwww oowwwwwwww owwwwwwwww",
            "wwwwooooww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "wwwwoowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww oowwwwwwww oowwwwwwww owwwwwwwww",
            "wwwwowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww oowwwwwwww oowwwwwwww owwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww oowwwwwwww oowwwwwwww owwwwwwwww",
        },
        {
            "wwwwwwwwww wwwwwwwwoo wwwwwwwwoo wwwwwwoooo wwwwwoowow "
            "ooooowwwww oooowwwwww oooooowwww oooooowwww ooooowwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwooow "
            "owwwwowwww owwwoowwww owwooowwww owooowwwww oooowwwwww",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwoow owwwwwwwww "
            "ooowwwwwww oowwwwwwww ooowwwwwww ooowwwwwww ooowwwwwww",
            "wwwwwwoooo wwwwwwwwoo wwwwwwwwow wwwwwoooww owwoooowww "
            "oooowowwww ooooowwwww oooowwwwww oooowwwwww owowwwwwww",
            "wwwooooooo ooowwwwwoo wwwwwwwwww oowwooowww oowooowwww "
            "ooooowwwww oooowwwwww oooowwwwww ooowwwwwww oowwwwwwww",
            "wwoooowwww ooooowwwow wwwwwwwwww ooooowwwww ooooowwwww "
            "oooowwwwww ooowwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "woooowwwww ooooooowww wwwwwwwwww ooooowwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "wooooowwww oooooowwww wwwwwwwwww oooowwwwww ooowwwwwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "wooooowwww ooooowwwww wwwwwwwwww ooowwwwwww oowwwwwwww "
            "owwwwwwwww owwwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "woooowwwww oooowwwwww wwwwwwwwww oowwwwowww owwwwowwww "
            "owwwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
        },
        {
            "wowwwwwwww wowwwwwwww wwwwwwwwww wwwwwwwwww wowwwwwwww "
            "wowwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww wowwwwwwww",
            "wwwwwwwwoo wooooooooo wooooooooo wooooooooo wooooowwow "
            "wooooowwww wooooowwww woooooowww woooooowww woooooowww",
            "wwwwwwwwoo wooooooooo wooooooooo woooooooow woooooooww "
            "woooooowww wooooowwww wwooowwwww wwooowowww woooowowww",
            "wwwooooooo wooooooooo wwwooooooo woooooooow woooooowww "
            "wooooowwww wwooowwwww wwwoowoooo wwwowooooo wwwwoooooo",
            "wwooooowww wooooooooo wwwoooooow woooooooww wwoooowwww "
            "wwwoowwwww wwwowwwwww wwwwwwwwww wwwwwwowww wowwwoooww",
            "wwoooowwww ooooooooow wowoowwwww wooooowwww wwwoowwwww "
            "wwwwwwwwww wwwwwwwwww wwowwwwwww wowwwwwwww wwwwwwwwww",
            "woooowwwww ooooooowww wwwwwwwwww wwwwowwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww woowwwwwww wowwwwwwww wwwwwwwwww",
            "wooooowwww oooooowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wowwwwwwww wowwwwwwww owwwwwwwww",
            "wooooowwww ooooowwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wowwwwwwww oowwwwwwww owwwwwwwww",
            "woooowwwww oooowwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww oowwwwwwww oowwwwwwww wwwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
