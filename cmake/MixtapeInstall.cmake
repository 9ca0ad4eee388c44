# make install: headers, both libraries, the program, and what find_package(mixtape) and pkg-config read.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mixtape DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS mixtape EXPORT mixtapeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS mixtape_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT mixtapeTargets NAMESPACE mixtape:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mixtapeConfig.cmake.in ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake ${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)

configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape.pc.in ${PROJECT_BINARY_DIR}/mixtape.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mixtape.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
