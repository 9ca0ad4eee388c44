# make install: the library (component runtime); headers, static library, documents, examples and the files of
# find_package(mixtape) and pkg-config (development); the program, its man pages and completions (tools).
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS mixtape EXPORT mixtapeTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# libcurl and cairo are not linked: the first download and the first picture load them.
set(static_libraries jansson zip z pthread ${CMAKE_DL_LIBS} m)
if("images" IN_LIST MIXTAPE_PARTS_IN)
  list(APPEND static_libraries png jpeg)
endif()
if(MIXTAPE_CORE)
  target_link_libraries(mixtape INTERFACE "$<INSTALL_INTERFACE:${static_libraries}>")
else()
  target_link_libraries(mixtape_static INTERFACE "$<INSTALL_INTERFACE:${static_libraries}>")
  install(TARGETS mixtape_static EXPORT mixtapeTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)
install(EXPORT mixtapeTargets NAMESPACE mixtape:: DESTINATION ${config_folder} COMPONENT development)

set(plugin_folder ${CMAKE_INSTALL_LIBDIR}/mixtape)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mixtapeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake INSTALL_DESTINATION ${config_folder}
                              PATH_VARS plugin_folder)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mixtapeConfig.cmake ${PROJECT_BINARY_DIR}/mixtapeConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT development)

# Those of a core, which is static, are needed by every program; else by static ones alone.
set(MIXTAPE_REQUIRED_PACKAGES jansson libzip zlib)
if("images" IN_LIST MIXTAPE_PARTS_IN)
  list(APPEND MIXTAPE_REQUIRED_PACKAGES libpng libjpeg)
endif()
list(JOIN MIXTAPE_REQUIRED_PACKAGES " " MIXTAPE_REQUIRED_PACKAGES)
set(MIXTAPE_PRIVATE .private)
if(MIXTAPE_CORE)
  set(MIXTAPE_PRIVATE "")
  set(MIXTAPE_CORE_LIBRARIES " -lpthread -ldl -lm")
endif()
# mixtape.pc computes its prefix from its own place, so that `cmake --install BUILD --prefix DIR` is enough.
file(RELATIVE_PATH MIXTAPE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape.pc.in ${PROJECT_BINARY_DIR}/mixtape.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mixtape.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
if(MIXTAPE_MPI_FLAVORS)
  list(JOIN MIXTAPE_MPI_FLAVORS ", " MIXTAPE_MPI_FLAVOR_NAMES)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape-mpi.pc.in ${PROJECT_BINARY_DIR}/mixtape-mpi.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/mixtape-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endif()

# Documents keep the places that their links name.
set(document_folder ${CMAKE_INSTALL_DATADIR}/doc/mixtape)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
              ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/SECURITY.md
        DESTINATION ${document_folder} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${document_folder}
        COMPONENT development FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.h" PATTERN "*.f90"
        PATTERN "*.cpp" PATTERN "*.png")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/results DESTINATION ${document_folder}/bench
        COMPONENT development FILES_MATCHING PATTERN "*.md")

# ---- the program ----
if(NOT TARGET mixtape_program)
  return()
endif()
install(TARGETS mixtape_program RUNTIME COMPONENT tools)
find_package(Python3 COMPONENTS Interpreter)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "man pages and completions are not made: the program does not run here")
elseif(Python3_FOUND)
  set(pages ${PROJECT_BINARY_DIR}/command_pages)
  add_custom_command(OUTPUT ${pages}/man1/mixtape.1
                     COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
                     COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/command_pages
                             $<TARGET_FILE:mixtape_program> ${pages}
                     DEPENDS mixtape_program ${PROJECT_SOURCE_DIR}/tools/command_pages VERBATIM)
  add_custom_target(command_pages ALL DEPENDS ${pages}/man1/mixtape.1)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
  install(FILES ${pages}/bash/mixtape DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT tools)
  install(FILES ${pages}/zsh/_mixtape DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tools)
  install(FILES ${pages}/fish/mixtape.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT tools)
else()
  message(WARNING "no python3: man pages and completions are not made")
endif()
