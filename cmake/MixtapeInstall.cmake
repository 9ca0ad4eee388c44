# make install: headers, both libraries, the program, and the files of find_package(mixtape) and pkg-config.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mixtape DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(TARGETS mixtape EXPORT mixtapeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# libcurl is not linked: a download loads it at run time.
set(static_libraries jansson zip png jpeg crypto z ${MIXTAPE_HDF5_LINK_LIBRARIES} ${OpenMP_C_LIB_NAMES}
                     ${CMAKE_DL_LIBS} m)
target_link_libraries(mixtape_static INTERFACE "$<INSTALL_INTERFACE:${static_libraries}>")
install(TARGETS mixtape_static EXPORT mixtapeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)
install(EXPORT mixtapeTargets NAMESPACE mixtape:: DESTINATION ${config_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mixtapeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake ${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
        DESTINATION ${config_folder})

# mixtape.pc computes its prefix from its own place, so that `cmake --install BUILD --prefix DIR` is enough.
file(RELATIVE_PATH MIXTAPE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape.pc.in ${PROJECT_BINARY_DIR}/mixtape.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mixtape.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
