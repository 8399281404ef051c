# cmake --install: the library, its public headers under include/flow, and the package files for
# find_package(flow).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(
  TARGETS flow
  EXPORT flowTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(BUILD_SHARED_LIBS)
  install(
    TARGETS flow_main
    EXPORT flowTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(
  EXPORT flowTargets
  NAMESPACE flow::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flow)

get_property(flow_public_headers GLOBAL PROPERTY FLOW_PUBLIC_HEADERS)
configure_file(${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake.in
               ${PROJECT_BINARY_DIR}/install_headers.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/install_headers.cmake)

get_property(flow_link_libraries GLOBAL PROPERTY FLOW_LINK_LIBRARIES)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/flowConfig.cmake.in ${PROJECT_BINARY_DIR}/flowConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flow)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flowConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flowConfig.cmake ${PROJECT_BINARY_DIR}/flowConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flow)
