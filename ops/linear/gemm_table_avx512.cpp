// Written by tools/calibrate on Intel(R) Xeon(R) Processor with
// oneDNN 2.6.3 and OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64.

#include "ops/linear/gemm_table.h"

namespace flow::ops {

// clang-format off
const GemmTable::Text kGemmTableAvx512 = {{
    {
        {
            "wwwwwooooo wwwwwwoooo wwwwwwwooo wwwwwwwddd wwwwwwdddd "
            "wwwwwodddd oooooodddd oooooooood oooddddddd odddddoddd",
            "wwwwoooddd wwwwwwwodd wwwwwwwddd wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd wowwdddddd oooddddddd oodddddddd oodddddddd",
            "wwwooooddd wwwwwooooo wwwwwwwddd wwwwwwwddd wwwwwwdddd "
            "wooowddddd oooodddddd oooddddddd oodddddddd oodddddddd",
            "wwwooooodd wwwwwooooo wwwwwwwddd wwwwwwwddd wwwwwwdddd "
            "oooowddddd oooodddddd oodddddddd oodddddddd oodddddddd",
            "wwwooooodd wwwwoooood wwwwwwwddd wwwwwwwddd wwwwwwdddd "
            "oooowddddd oodddddddd oodddddddd oodddddddd oddddddddd",
            "oodooooood ooowoooood owoowwwddd wwwwwwwddd woowowdddd "
            "oooddddddd oodddddddd oodddddddd oddddddddd dddddddddd",
            "oddooooooo woowoooodd oooowddddd wwwwwwwddd ooddwwdddd "
            "dddddddddd oodddddddd oddddddddd oddddddddd oddddddddd",
            "odddoooood woowoooddd oooodddddd wwwdwwwddd dddddwdddd "
            "dddddddddd oddddddddd oddddddddd dddddddddd dddddddddd",
            "odddoooodd woododdddd wooddddddd wdddwddddd dddddddddd "
            "dddddddddd oddddddddd ddddddddwd dddddddddd dddddddddd",
            "odddoooddd wodddddddd wodddddddd dddddddddd dddddddddd "
            "dddddddddd dddddddddd ddddddwwdd dddddddddd dddddddddd",
        },
        {
            "wooooooooo wooooooooo wooooooooo wwwooooooo wwwooooooo "
            "wwwdoooooo wwwdoooooo wwwdoooood wwddoooodd wddddddddd",
            "wooooooooo wooooooooo wooooooooo wwwwoooooo wwwwoooood "
            "wwwwoooodd wwwwdddddd wwwwdddddd wwwwdddddd wwwwdddddd",
            "wooooooooo wooooooooo wooooooooo wwwwoooood wwwwwooood "
            "wwwwdddddd wwwwdddddd wwwwdddddw wwwwdddddw wwwwwwddww",
            "wooooooooo wooooooooo wooooooood wwwwwooodd wwwwwwdddd "
            "wwwddddddd wwdddddddd wddddddddd wddddddddd wddddddddd",
            "woodoooooo wooooooooo wwwddddddd wwwwwddddd wwwwwwdddd "
            "wwwdwddddd wddddddddd dddddddddd dddddddddd dddddddddd",
            "wddooooooo wwdooooood wwwddddddd wwwwwddddd wwwwdddddd "
            "wwddwddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wddooooooo wwdddddddd wwdddddddd wwwwdddddd wwdddddddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wdodoooood wwwddddddd wwdddddddd wwwddwdddd dddddwdddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dwwddddddd",
            "wddooooodd wwdddddddd wwdddddddd wdddwwwddd dddddwdddd "
            "dddddddddd dddddddddd dddddddddd dddddddddd dddddddddd",
            "wddddddddd wwdddddddd wddddddddd wdddwwdddd ddddwwdddd "
            "dddddddddd dddddddddd dddddddddd ddddwddddd ddddwwdddd",
        },
        {
            "wwwwwwwooo wwwwwwwddd wwwwwwwooo wwwwwwwddd wwwwwwdddd "
            "wwwwwddddd oooooodddd owoooddddd oooddddodd odddddoddd",
            "wwoooooooo wwwwwwwddd wwwwwooood wwwwwwwddd wwwwwwoddd "
            "wwwwwddddd ooowoddddd wowddddddd owdddddddd oodddddddd",
            "wooooooooo wwwooooooo wwwwoooddd wwwwwwwddd wwwwwwdddd "
            "wooooddddd oooodddddd oooddddddd oodddddddd oodddddddd",
            "wooooooddd wwwooooooo oooooooddd wwwwwwwddd wooooooddd "
            "wooooddddd oooodddddd oooddddddd oodddddddd oodddddddd",
            "oooooodddd wwoooooood oooooooddd wwwwwwwddd wooooodddd "
            "wooooddddd oooodddddd oodddddddd oddddddddd oddddddddd",
            "oooooodddd wwoooooood oooooooddd wwwwwwdddd ooooowdddd "
            "oooodddddd oooddddddd oodddddddd dddddddddd dddddddddd",
            "oooooddddd wooooooodd oooooddddd wwwowddddd oooodddddd "
            "dddddddddd oodddddddd oddddddddw oddddddddd oddddddddd",
            "oooooodddd wooooooddo oooodddddd wwwddddddd dodddddddd "
            "dddddddddd oddddddddw ddddddwdww dddddddddw dddddddddd",
            "dddddddddd wwooooodoo wooddddddd wddddddddd dddddddddw "
            "dddddddddd oddddddwww ddddddwwww ddddddwwww dddddddddd",
            "dddddddddd wdooooddoo wooddddddd dddddddddd dddddddddw "
            "dddddddddw ddddddwwww dddddwwwww dddddddddd dddddddddd",
        },
        {
            "wooooddddd wooodddddd wooddddddd wwwddddddd wwwddddddd "
            "wwwddddddd wwwddddddd wwwddddddd wwdddddddd wddddddddd",
            "wooooooooo wooooooooo wooooooooo wwwwoooooo wwwwoooooo "
            "wwwwoooood wwwwooooww wwwddodwww wwddddddww wdddddddww",
            "wooooooooo wooooooooo wooooooooo wooooooooo wwoooooood "
            "wwoooooodd wwwoooddww wwoooddwww wddoddddww dddddddwww",
            "wooooooddd wooooooooo wooooooood wwoooooodd wwoooooddd "
            "wwoooodddd wwwoodddww wwdddddwww wdddddddww wdddddddww",
            "wooooodddd wooooooooo wooooooodd wwwooooddd wwwooodddd "
            "wwwooddddd wddddddddw dddddddwww ddddddddww ddddddddww",
            "wooooodddd wooooooood wooooooddd wwoooodddd wwoooddddd "
            "wddddddddd dddddddddd dddddddddw dddddddwww ddddddddow",
            "dooooddddd wooooooodd wooooodddd wwwwdddddd wwwowddddd "
            "dddddddddd dddddddddd dddddddwww dddddddwwo dddddddooo",
            "dooooodddd wooooooddo wwododdddd wwdddddddd dddddddddd "
            "dddddddddd dddddddddd dddddddwww dddddddwww dwwddddooo",
            "dddddddddd woooooodoo wddddddddd wddddddddd dddddddddd "
            "dddddddddd ddddddddww ddddddwwww ddwdddwwww dddddddddd",
            "dddddddddd woooooddoo wddddddddd wddddddddd dddddddddw "
            "dddddddddw ddddddddww dddddwwwww dddddddddd dddddddddd",
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
