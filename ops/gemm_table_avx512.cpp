// Written by tools/calibrate on Intel(R) Xeon(R) Processor with
// oneDNN 2.6.3 and OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64.

#include "ops/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable kGemmTableAvx512 = {{
    {
        {
            "wwwwoooooo wwwwwwoooo wwwwwwwooo wwwwwwwooo wwwwwwoddd "
            "wwwwwodddd wwoooooodd oooooooodd wooooddodd ooooddoddd",
            "wwwwoooddd wwwwwwwodd wwwwwwwddd wwwwwwwddd wwwwwwoddd "
            "wwoooodddd wwoooddddd wwwodddddd owoddddddd oodddddddd",
            "wwwooooddd wwwwwooood wwwwwwwddd wwwwwwwddd owwwoodddd "
            "wwoooddddd owoodddddd owoddddddd oodddddddd oodddddddd",
            "wwwooooodd wwwwoooooo wwwwwwwddd wwwwwwwddd wwwwowoddd "
            "oooooddddd owoodddddd wwoddddddd woddddddww wodddddwww",
            "wwwooooodo wwwwoooooo wwwwwwwddd wwwwwwwddd wwwooodddd "
            "oooodddddd oooddddddd wddddddddd ddwddddddw owwwdddddd",
            "wwdooooooo wwwooooood wwwoowwwdd wwwwwwwwdd wwooowwwdd "
            "oooddddwdd oodddddddd oddddddddd dddddddddw dwwwdwwddd",
            "odddoooood woowooowdw owooowwwdw wwwwwwwwdw ooodwwwwww "
            "oooddwwwdd oddddddddd dddddddddd ddwwwdwwdd owwwwwwddd",
            "odddoooood ooodooowdw owooowwwdw wwwdwwwwww owdddwwwww "
            "oddddwwwwd odddddwwdd dddwdddwdd ddwwdwwwww dwwwwwwwdw",
            "odddoooodd ooodowwwdd wooddwwwdd wwwdwwwdww odddwwwwww "
            "dddddwwwwd ddddwwwwdw ddddddwwdd ddddwwwwdw ddddwwwwww",
            "wdddoooddd woodwwwwdd wooddwwwdd wwwdwwwwdd dddddwwwwd "
            "dddddwwwwd ddddwwwwwd dddwwwwwdd ddddwwwwwd ddddwdwwwd",
        },
        {
            "wooooooooo wooooooooo wooooooooo wwwooooooo wwwdoooooo "
            "wwwdoooooo wwwdoooooo wwwdoooood wwwdoooodd wwwddddddd",
            "wooooooooo wooooooooo wooooooooo wwwwoooooo wwwwoooood "
            "wwwwoooodd wwwwdddddd wwwwwddddw wwwwwddddw wwwwwdwwww",
            "wooooooooo wooooooooo wooooooooo wwwwoooood wwwwoooood "
            "wwwwdddddd wwwwwwdddd wwwwwwwddw wwwwwwwdww wwwwwwwwww",
            "wooooooooo wooooooooo wooooooood wwwwwooodd wwwwwwddww "
            "wwwwwdwddd wwwwdddddw wwdddddddd wwdddddddw wddwwwdwww",
            "wooooooooo wooooooooo wwwdoooodd wwwwwwdddd wwwwwwwwww "
            "wwwwwwwddd wwwwwwwwdw wwdddddwdw ddwddddddw wdwdwddwdw",
            "wdoooooooo wwddoooood wwwddddddd wwwwwwdddd wwwwwwdwdd "
            "wwwwwwwwww dwwwwwwwwd ddddddwddw dddddddddd dwwwdwwwdd",
            "wddooooooo wwwddddddd wwwddddddd wwwwwwwwdw wwwwwwdddw "
            "wddddwwwww ddddddwwww dddwdddwdw ddwwwwwwww dwwddddwdd",
            "wddooooood wwwddddddd wwwddddddd wwwwwwwwdw wdddwwwwww "
            "dddddwwwww ddddddwwww dddwdwwwdw ddwwwdwwww dwwwddwwww",
            "wddooooodd wwwwddwwdd wwwdddwddd wwwwwwwwww wdddwwwwww "
            "ddddwwwwww ddddwwwwww dddwwwwwdw ddwwwwwwww dwddwwddwd",
            "wddddddddd wwwwdwwddd wwwwddwddd dwwwwdwwdd ddddwwwwwd "
            "dddddwwwwd dddddwwwww dddwdwwwww ddddwwwwdd dwddwwwwdd",
        },
        {
            "wwwwwwwooo wwwwwwwddd wwwwwwwooo wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd owowoooddd wwwooooodd wwoooddodd ooooddoddd",
            "wwoooooooo wwwwwwwddd wwwwwooooo wwwwwwwddd wwwwwwoddd "
            "wwwwoddddd wwwodddddd wwwodddddd wwodddddwd oodddddddd",
            "wooooooooo wwwwoooooo wwwwwwwddd wwwwwwwddd wwwwoodddd "
            "wwoooddddd oooodddddd oowddddddd oodddddddw oodddddddd",
            "wooooooooo wwwooooooo wwwooooddd wwwwwwwddd wwwooooddd "
            "wooooddddd oooodddddd owoddddddd owddwwwwdw woddwwwwdw",
            "oooooodddd wwoooooooo wwwoowwddd wwwwwwwdww wooooodwww "
            "wooodddddw oooddddddd owdddddddd ddddwdwddw owddwddwdd",
            "oooooodddd wwooooooow ooooooddwd wwwwwddwww oooooddwww "
            "ooooddddww ooodddwwww oddwddwddd ddwwwwddwd ddddwwwwww",
            "oooooodddd woooooooww oooooddwww wwwdddwwww oooodddwww "
            "oooddddwww oodddddwww dddddwwdww ddwwwwdwww dwwwwwwwww",
            "oooooooood wwoooooodo oooododdww wwddddwdww ooddddwwww "
            "ooddddwwww odddwwwwww dddwwwwwww ddwwwwwwww dwwwwwwwww",
            "dddddddddd wwoooooooo oooodddwww wwdddddwww ddddwdwwww "
            "dddddwwwww oddddwwwww dddwdwwwww ddwwwwwwww dwwdwwwwww",
            "dddddddddd wwdoooowww ooododdwww wwdddwdwww ddddddwwww "
            "wdddddwwww ddddwwwwww dddwwwwwww ddwwwwwwww ddddwwwwww",
        },
        {
            "wooooddddd wooodddddd wooddddddd wwwddddddd wwwddddddd "
            "wwwddddddd wwwddddddd wwwddddddd wwwddddddd wwwddddddd",
            "wooooooooo wooooooooo wooooooooo wwoooooooo wwwwoooooo "
            "wwwoooooow wwwwwwwwww wwwwwwwwww wdwwwwwwww wdwwwwdwww",
            "wooooooooo wooooooooo wooooooooo wwoooooooo wwooooooow "
            "wwooooooww wwwooodwww wwooowwwww wdwowwwwww wddwwwwwww",
            "wooooooood wooooooooo wooooooood wwoooooodd wwooooodww "
            "wwooooddww wwwooddwww wddodwwwww wddwwwdwww wddwwwdwww",
            "wooooodddd wooooooooo wooooooodd wwwooooddd wwwoooddww "
            "wwwdodddww wwdwdwwwww wdddwwdwww dddwdwwwww wwwddwwwww",
            "wooooooddd wooooooood wooooooddd wwwoooddww wwwwoddwww "
            "wwddddddww dddddwwwww dddddwwwww ddwwwdwwww dwwwwwwwww",
            "dooooooddd wooooooood wooooodddw wwwoowddww wwdddwwwww "
            "wddddddwww dddddwwwww dddwwwwwww owwwwwwwww dwwwwwwwww",
            "dooooooodd wooooooooo wooododddw wdwdddddww wdddddwwww "
            "dddddwwwww dddddwwwww oddwwwwwww odwwwwwwww dwwwwwwwww",
            "dddddddddd wooooooooo wwddwwdwww wddwwddwww wdddddwwww "
            "dddddwwwww ddddwwwwww dwdwwwwwww ddwwwwwwww dwwdwwwwww",
            "dddddddddd woooooooow wddwwdwwww wddddwdwww wddddwwwww "
            "dddddwwwww ddddwwwwww oddwwwwwww ddwwwwwwww dwddwwwwdw",
        },
    },
    {
        {
            "wwwwoooooo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "owoooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwowoooooo "
            "owooooooww ooooooooww owwoooowww owooowoooo ooooowoooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwoo wwwooooooo ooowowooow "
            "ooooooowww oooooowwww owooowwwww oooowwoooo oooowwoooo",
            "wwoooooooo wwwwwwwwoo wwwwwwwwow wwwowwwoww wwooowowww "
            "oooooowwww owowowwwww wwwowwwwww woowwwoowo wowwwwwooo",
            "wwoooooooo wwwwwwwwoo wwwwwwwwww owwoowwwww ooooowwwww "
            "oooowwwwww ooowwwwwww ooowwwwwww oowwwwwwww wwwwwwoooo",
            "wwoooooooo ooowwwwwow wwwwwwwwww owwoowwwww ooooowwwww "
            "oooowwwwww oooowwwwww wowwwwwwww wowwwwwowo owwwwwwwoo",
            "oooooooooo ooowwwwwww wwwwwwwwww oooowwwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwoo",
            "wwoooooooo ooowwwwwww wwwwwwwwww owoowwwwww ooowwwwwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww wwwwwwwwww",
            "ooooooooow woowwwwwww wwwwwwwwww owowwwwwww oowwwwwwww "
            "oowwwwwwww oooowwwwww owowwwwwww oowwwwwwww owwwwwwwww",
            "ooooooowww wwowwwwwww wwwwwwwwww oowwwwwwww owwwwwwwww "
            "owwwwwwwww owowwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
        },
        {
            "wwoooooooo wwoooooooo wwwooooooo wwwooooooo wwoooooooo "
            "wooooooooo wooooooooo wooooooooo wooooooooo wooooooooo",
            "wwwooooooo wwwooooooo wwwwoooooo wwwooooooo wwwooooooo "
            "wwwoooooow wwwoowwwww wwwwwwwoow wwwwwwoooo wwwwoooooo",
            "wwwooooooo wwwooooooo wwwwoooooo wwwwoooooo wwwwooooww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo wwwwwooooo",
            "wwwooooooo wwwwoooooo wwwwwowwow wwwwwowoww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwoooo wwwwwooooo",
            "wwwooooooo wwwwooowow wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwoooo",
            "wwwooooooo wwwwwowwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwowwwwwww wwwwwwwwwo wwwwwwoooo",
            "wwwooooooo wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww wwowwwwwww oowwwwwwww owwwwwwooo",
            "wwwooooooo wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww ooowwwwwww oowwwwwwww wwwwwwwwww",
            "wwwoooooww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww oowowwwwww ooowwwwwww wowwwwwwww owwwwwwwww",
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wowowwwwww ooowwwwwww wowwwwwwww owwwwwwwww",
        },
        {
            "wwwwwwwooo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "owoooooooo wooooooooo oooooooooo oooooooooo oooooooooo",
            "wwoooooooo wwwwwooooo wwwwwwwwoo wwwwoooooo wwwoowoooo "
            "wwwoooooow wwowooowww owwooowwww wwoooooooo oooooooooo",
            "wooooooooo wwwwoooooo wwwwwwwwoo wwwwowooow wwwoooooww "
            "ooooooowww oowwoowwww owwooowwww ooooowoooo oooowooooo",
            "wooooooooo owwwoooooo wwwwwwwwow ooooooooww ooooooowww "
            "oooooowwww owwwowwwww wwoowwwwww woowwwoooo oowwwwoooo",
            "oooooooooo owooooooow wwwwwwwwww ooooooowww oooooowwww "
            "ooooowwwww oooowwwwww ooowwwwwww oowwwwwwww owwwwwwooo",
            "oooooooooo ooooooooww wwoowwwwww oooooowwww ooooowwwww "
            "oooowwwwww ooowwwwwww oowwwwwwww owwwwwwoww owwwwwwwow",
            "oooooooooo ooooowowww wwowwwwwww oooooowwww oooowwwwww "
            "ooowwwwwww oowwwwwwww owowwwwwww oowwwwwwww owwwwwwoow",
            "oooooooooo oooooowwww wwwwwowwww ooooowwwww ooowwowwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
            "ooooooooow ooooowwwww wwwwwwwwww ooowowowww oowwwowwww "
            "owwwwwwwww oooowwwwww owowwwwwww oowwwwwwww owwwwwwwww",
            "oooooooowo oooowwwwww wwwwwwwwww oowwwoowww owwwwowwww "
            "owwwowwwww ooowwwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
        },
        {
            "wooooooooo wooooooooo wwwooooooo wwwooooooo wwoooooooo "
            "wwoooooooo wwoooooooo wooooooooo wooooooooo wooooooooo",
            "wooooooooo wooooooooo wooooooooo wooooooooo wooooooooo "
            "woooooooow wooooooooo woooooowww wooooooooo wooooooooo",
            "wooooooooo wooooooooo wwoooooooo wwooooooow woooooooww "
            "woooooowww wooooowwww woooooooww woooowoooo wooowwoooo",
            "wooooooooo wooooooooo wwooooooow wwooooooww wwooooowww "
            "wwoooowwww wooooowwww wooowwwwww wwowwwoooo wwwwwwoooo",
            "oooooooooo woooooooow wwooooooww wwwoooowww wwoooowwww "
            "wwooowwwww wooowwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo",
            "oooooooooo wwooooooww wwooowwwww wwoooowwww wwwoowwwww "
            "wwoowwwwww wwowwwwwww wwwwwwwwww wwwwwwwwwo wwwwwwoooo",
            "oooooooooo oooowoooww wwowwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwowwwwww woowwwwwww wowwwwwwwo wwwwwwoooo",
            "oooooooooo oooooowoww wwwwowwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwowwwwww woowwwwwww wowwwwwwww wwwwwwwwww",
            "ooooooooow oooowwwwww wwwwwwwoww wwwwwoowww wwwwoowwww "
            "wwwwwwwwww wwwwwwwwww wwowwwwwww wowwwwwwww owwwwwwwww",
            "ooooooooww oooowwwoww wwwwwwwoww wwwwwwowww wwwwwowwww "
            "wwwwwwwwww wwwwwwwwww ooowwwwwww wowwwwwwww owwwwwwwww",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
