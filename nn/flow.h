// Everything a program needs: #include <flow/flow.h>.
#pragma once

#include "core/version.h"
