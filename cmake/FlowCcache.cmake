# Compiles through ccache where it is installed. The sloppiness is what ccache needs to cache files
# that use a precompiled header; it reads such a file, which is large, once per build (INODECACHE). The
# rest lets one cache serve several checkouts of this project.
find_program(FLOW_CCACHE ccache)
mark_as_advanced(FLOW_CCACHE)
if(FLOW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1
      CCACHE_IGNOREOPTIONS=-fmacro-prefix-map=/* ${FLOW_CCACHE})
endif()
