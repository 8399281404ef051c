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
            "wwwwwooooo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwooooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "wowwwooooo wowwoooooo owwooooooo oooooooooo oooooooooo",
            "wwoooooooo wwwwwwwwoo wwwwwwwwoo wwwwwowooo wowwwwooow "
            "wooowoooww ooowoooooo oowooooooo oooooooooo oooooooooo",
            "wwoooooooo wwwwwwwooo wwwwwwwwoo wwwwwowoow wowwowooww "
            "ooowwoowww ooowoooooo oowoowoooo oooooooooo ooowoooooo",
            "wwoooooooo wwowwwwooo wwwwwwwwow wwwooowoww oowwowowww "
            "oooowwwwww ooowwwwwww oooowwwwww ooowwwoooo oowwwwoooo",
            "oooooooooo wooowwwooo wwwwwwwwww wwwooowwww ooooowwwww "
            "oooowwwwww ooowwwwwww oowwwwwoww oowwwwoooo owwwwooooo",
            "oooooooooo oooowwwwoo wwwwwwwwww oowoowwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww oowwwwwwww owwwwwwwow owwwwwoooo",
            "oooooooooo ooowwwwwoo wwwwwwwwww oooowwwwww ooowwwwwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwooo",
            "oooooooooo wooowwwwoo wwwwwwwwww oowwwwwwww oowwwwwwww "
            "owwwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwoo",
            "ooooooowoo wooowwwwow wwwwwwwwww oowwwwwwww owwwwwwwww "
            "owwwwwwwww oooowwwwww ooowwwwwww oowwwwwwww owwwwwwwoo",
        },
        {
            "woowoooooo wwwooooooo wwwooooooo wwwooooooo wwwooooooo "
            "wwoooooooo wooooooooo wooooooooo wooooooooo wooooooooo",
            "wwwooooooo wwwwoooooo wwwwoooooo wwwwoooooo wwwwoooooo "
            "wwwooooooo wwwwoooooo wwwooooooo wwoooooooo wooooooooo",
            "wwwooooooo wwwwoooooo wwwwwooooo wwwwoooooo wwwwoooooo "
            "wwwwwwwoww wwwwoooooo wwwooooowo wwowowoooo wwwooooooo",
            "wwwooooooo wwwwoooooo wwwwwwwwoo wwwwwowoow wwwwwwwwww "
            "wwwwwwwwww wwwwwoowww wwwwwooooo wwwwoooooo wwwooooooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwow wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwwoo wwwwwwoooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwww wwwwwwwoww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww wwwwwwwwww owwwwwoooo wwwwwwoooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww owwwwwwwww wwwwwwwwww oowwwwwooo wwwwwwoooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwww owwwwwwwww owwwwwwwww "
            "owwwwwwwww owwwwwwwww oowwwwwwww oowwwwwwww owwwwwoooo",
            "wwwooooooo wwwwwwwwoo wwwwwwwwww owwwwwwwww owwwwwwwww "
            "owwwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwwoo",
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwww wwwwwwwwww owwwwwwwww "
            "owwwwwwwww ooowwwwwww ooowwwwwww oowwwwwwww owwwwwwwwo",
        },
        {
            "wwwwwwwwoo wwwwwwwwoo wwwwwwwwoo wwwwwwwooo wwwwwwoooo "
            "oooooooooo oooooooooo oooooooooo oooooooooo oooooooooo",
            "wwoooooooo wwwwwoowoo wwwwwwwwoo wwwwowwooo wowwwwoooo "
            "oowwwoooow oowwoooooo owwooooooo owoooooooo oooooooooo",
            "wooooooooo owwwoooooo wwwwwwwwoo wowwoowooo woooowooow "
            "oooowoooww ooowoooooo oowooooooo oooooooooo oooooooooo",
            "wooooooooo owoooooooo wwwwwwwwoo woooooooow woooooooww "
            "ooooooowww oooooowwww oooooowooo oooooooooo ooowoooooo",
            "oooooooooo oooooooooo wwwwwwwwww ooooooowww ooooooowww "
            "ooooowwwww ooooowwwww oooowwwwww ooowwwwooo oowwwwoooo",
            "oooooooooo oooooooooo wwwwwwwwww oooooowwww ooooowwwww "
            "oooowwwwww oooowwwwww ooowwwwwww oowwwwoooo owwwwwoooo",
            "oooooooooo ooooooowoo wwwwwwwwww ooooowwwww oooowwwwww "
            "ooowwwwwww oowwwwwwww oowwwwwwww owwwwwwowo owwwwwoooo",
            "oooooooooo oooooowwoo wwwwwwwwww oooowwwwww ooowwwwwww "
            "oowwwwwwww oowwwwwwww ooowwwwwww oowwwwwwww owwwwwwooo",
            "oooooooooo woooowwwoo wwwwwwwwww ooowwwwwww oowwwwwwww "
            "oowwwwwwww oowowwwwww ooowwwwwww oowwwwwwww owwwwwwwoo",
            "oooooooooo wooowwwwow wwwwwwwwww oowwwwowww oowwwowwww "
            "owwwwwwwww oooowwwwww ooowwwwwww oowwwwwwww owwwwwwwww",
        },
        {
            "wooooooooo wooooooooo wwwwoooooo wwwooooooo wwwooooooo "
            "wwwooooooo wwwooooooo wwoooooooo wooooooooo wooooooooo",
            "wooooooooo wooooooooo wowooooooo wooooooooo wooooooooo "
            "wooooooooo wooooooooo wooooooooo wooooooooo wooooooooo",
            "wooooooooo wooooooooo wooooooooo wooooooooo woooooooow "
            "woooooooww woooooooow wwoooowoow wwoooooooo wooooooooo",
            "wooooooooo wooooooooo wwwooooooo woooooooow wwooooooww "
            "wwooooowww wwwooooowo wwwooowooo wwoooooooo wwwooooooo",
            "oooooooooo wooooooooo wwwoooooow woooooooww woooooowww "
            "wwoooowwww wwwoowwwww wwwowwwwww wwwwwwwwoo wwwwwwwooo",
            "oooooooooo wooooooooo wwwowwwwww wooooowwww wwooowwwww "
            "wwoowwwwww wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwoooo",
            "oooooooooo wooooooooo wwwwwwwwww wwwwowwwww wwowwwwwww "
            "wwwwwwwwww wwwwwwwwww wwwwwwwwww wwwwwwwooo wwwwwwoooo",
            "oooooooooo wooooowwow wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wwwwwwwwww wowwwwwwww wowwwwwwww wwwwwwoooo",
            "oooooooooo woooowwwow wwwwwwwwww wwwwwwwwww wwwwwwwwww "
            "wwwwwwwwww wowwwwwwww woowwwwwww oowwwwwwww owwwwwwwoo",
            "ooooooooow wooowwwwww wwwwwwwwww wwwwwwwwww wwwwwowwww "
            "wwwwwwwwww wooowwwwww oowwwwwwww oowwwwwwww owwwwwwwwo",
        },
    },
}};
// clang-format on

}  // namespace flow::ops
