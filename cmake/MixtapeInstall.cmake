# make install: headers, both libraries, the program, and what find_package(mixtape) and pkg-config read.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mixtape DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS mixtape EXPORT mixtapeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# libcurl is loaded at run time, where a download wants it.
target_link_libraries(mixtape_static INTERFACE "$<INSTALL_INTERFACE:jansson;zip;png;crypto;z;${OpenMP_C_LIB_NAMES};${CMAKE_DL_LIBS};m>")
install(TARGETS mixtape_static EXPORT mixtapeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT mixtapeTargets NAMESPACE mixtape:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mixtapeConfig.cmake.in ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake ${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)

# The file finds its prefix from where it lies, so that `cmake --install BUILD --prefix DIR` needs no other word.
file(RELATIVE_PATH MIXTAPE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape.pc.in ${PROJECT_BINARY_DIR}/mixtape.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mixtape.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
