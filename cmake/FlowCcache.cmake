# Compiles through ccache where it is installed, with one cache for all checkouts of this project.
# The sloppiness is what ccache needs to cache files that use a precompiled header. It knows such a
# header by the checksum that compile.sh writes (PCH_EXTSUM).
find_program(FLOW_CCACHE ccache)
mark_as_advanced(FLOW_CCACHE)
if(FLOW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_IGNOREOPTIONS=-fmacro-prefix-map=/* ${CMAKE_CURRENT_LIST_DIR}/compile.sh
      ${FLOW_CCACHE})
endif()
