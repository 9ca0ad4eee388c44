# One plug-in for each MPI flavour whose compiler wrapper is found. The library links none: it loads the
# plug-in of the flavour that started the processes (src/distribute/plugin.c).
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/distribute/plugin.c PROPERTIES
                            COMPILE_DEFINITIONS MIXTAPE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/plugins)
set(MIXTAPE_MPI_FLAVORS "")
foreach(flavor openmpi mpich)
  find_program(MIXTAPE_MPICC_${flavor} NAMES mpicc.${flavor})
  if(NOT MIXTAPE_MPICC_${flavor})
    continue()
  endif()
  # What the wrapper adds to the compiler's command line: the compiler stays the one of the build.
  if(flavor STREQUAL "openmpi")
    execute_process(COMMAND ${MIXTAPE_MPICC_${flavor}} --showme:compile OUTPUT_VARIABLE compile
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${MIXTAPE_MPICC_${flavor}} --showme:link OUTPUT_VARIABLE link
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  else()
    execute_process(COMMAND ${MIXTAPE_MPICC_${flavor}} -compile_info OUTPUT_VARIABLE compile
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${MIXTAPE_MPICC_${flavor}} -link_info OUTPUT_VARIABLE link
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  separate_arguments(compile UNIX_COMMAND "${compile}")
  separate_arguments(link UNIX_COMMAND "${link}")
  list(FILTER compile INCLUDE REGEX "^-I")
  list(TRANSFORM compile REPLACE "^-I" "")
  list(FILTER link INCLUDE REGEX "^-[lL]")
  add_library(mixtape_mpi_${flavor} MODULE ${PROJECT_SOURCE_DIR}/src/distribute/mpi/plugin.c)
  target_include_directories(mixtape_mpi_${flavor} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(mixtape_mpi_${flavor} SYSTEM PRIVATE ${compile})
  target_compile_options(mixtape_mpi_${flavor} PRIVATE ${MIXTAPE_WARNINGS})
  target_link_libraries(mixtape_mpi_${flavor} PRIVATE ${link})
  set_target_properties(mixtape_mpi_${flavor} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY
                                                         ${PROJECT_BINARY_DIR}/plugins)
  install(TARGETS mixtape_mpi_${flavor} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mixtape)
  list(APPEND MIXTAPE_MPI_FLAVORS ${flavor})
endforeach()
