# The Fortran modules: fortran/generate.py writes most of them from the public headers. With AUTO a build
# without a Fortran compiler or without Python has none. Sanitizers of clang do not go with gfortran.
set(MIXTAPE_FORTRAN AUTO CACHE STRING "Build the Fortran modules: ON, OFF, or AUTO, if a compiler is found")
set(MIXTAPE_FORTRAN_FLAVORS "")
if(NOT MIXTAPE_FORTRAN MATCHES "^(ON|OFF|AUTO)$")
  message(FATAL_ERROR "MIXTAPE_FORTRAN is ${MIXTAPE_FORTRAN}; expected ON, OFF or AUTO")
endif()
set(reason "")
find_package(Python3 COMPONENTS Interpreter)
if(MIXTAPE_FORTRAN STREQUAL "OFF")
  set(reason "MIXTAPE_FORTRAN is OFF")
elseif(MIXTAPE_CORE)
  set(reason "the core has none")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_Fortran_COMPILER)
  set(reason "no Fortran compiler for another machine")
elseif(CMAKE_C_FLAGS MATCHES "-fsanitize" AND NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(reason "sanitizers of ${CMAKE_C_COMPILER_ID}")
elseif(NOT Python3_FOUND)
  set(reason "no python3")
else()
  include(CheckLanguage)
  check_language(Fortran)
  if(NOT CMAKE_Fortran_COMPILER)
    set(reason "no Fortran compiler")
  endif()
endif()
if(reason)
  if(MIXTAPE_FORTRAN STREQUAL "ON")
    message(FATAL_ERROR "MIXTAPE_FORTRAN is ON: ${reason}")
  endif()
  message(STATUS "Fortran modules: none (${reason})")
  return()
endif()

enable_language(Fortran)
set(CMAKE_Fortran_FLAGS_RELEASE "-O2 -g1")
if(CMAKE_C_FLAGS MATCHES "-fsanitize") # those of the C compiler, whose run time programs then link
  set(CMAKE_Fortran_FLAGS "${CMAKE_Fortran_FLAGS} ${CMAKE_C_FLAGS}")
endif()
set(MIXTAPE_FORTRAN_WARNINGS "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  set(MIXTAPE_FORTRAN_WARNINGS -std=f2018 -Wall -Wextra $<$<BOOL:${MIXTAPE_WERROR}>:-Werror>)
endif()

set(fortran ${PROJECT_SOURCE_DIR}/fortran)
set(made ${PROJECT_BINARY_DIR}/fortran)
set(modules ${made}/modules)
file(GLOB fortran_inputs CONFIGURE_DEPENDS ${fortran}/*.py ${fortran}/*.in
     ${PROJECT_SOURCE_DIR}/include/mixtape/*.h)
set(fortran_outputs ${made}/mixtape_c.f90 ${made}/mixtape_calls.f90 ${made}/layouts.f90 ${made}/layouts.h
                    ${made}/unmapped.txt)
add_custom_command(OUTPUT ${fortran_outputs}
                   COMMAND sh -c "\"$1\" -E -dD -I\"$2\" \"$2/mixtape/mixtape.h\" | \"$3\" \"$4\" \"$5\"" sh
                           ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/include ${Python3_EXECUTABLE}
                           ${fortran}/generate.py ${made}
                   DEPENDS ${fortran_inputs} VERBATIM)
add_library(mixtape_fortran STATIC ${made}/mixtape_c.f90 ${fortran}/support.f90 ${fortran}/shapes.f90
                                   ${made}/mixtape_calls.f90 ${fortran}/mixtape.f90 ${fortran}/layouts.c)
set_target_properties(mixtape_fortran PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME fortran
                                                 Fortran_MODULE_DIRECTORY ${modules})
set_source_files_properties(${fortran}/layouts.c PROPERTIES OBJECT_DEPENDS ${made}/layouts.h)
target_include_directories(mixtape_fortran PRIVATE $<$<COMPILE_LANGUAGE:C>:${made}>)
set(installed_modules ${CMAKE_INSTALL_INCLUDEDIR}/mixtape/fortran)
target_include_directories(mixtape_fortran PUBLIC $<BUILD_INTERFACE:${modules}>
                                                  $<INSTALL_INTERFACE:${installed_modules}>)
target_compile_options(mixtape_fortran PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:${MIXTAPE_FORTRAN_WARNINGS}>
                                               $<$<COMPILE_LANGUAGE:C>:${MIXTAPE_WARNINGS}>)
target_link_libraries(mixtape_fortran PUBLIC mixtape)
add_library(mixtape::fortran ALIAS mixtape_fortran)

include(CheckSourceCompiles)
# What a program of MPI's module mpi_f08 compiles and links, for each flavour that has it.
foreach(flavor ${MIXTAPE_MPI_FLAVORS})
  set(names mpifort.${flavor})
  if(flavor STREQUAL plain) # of MixtapeMpi.cmake
    list(APPEND names mpifort)
  endif()
  find_program(MIXTAPE_MPIFORT_${flavor} NAMES ${names})
  if(NOT MIXTAPE_MPIFORT_${flavor})
    continue()
  endif()
  mixtape_ask_wrapper(${MIXTAPE_MPIFORT_${flavor}} ${flavor} mpi)
  if(NOT mpi_FOUND)
    continue()
  endif()
  set(CMAKE_REQUIRED_INCLUDES ${mpi_INCLUDES})
  set(CMAKE_REQUIRED_LIBRARIES ${mpi_LINK})
  set(source "program p; use mpi_f08; call MPI_Finalize(); end program")
  check_source_compiles(Fortran "${source}" MIXTAPE_MPI_F08_${flavor})
  if(NOT MIXTAPE_MPI_F08_${flavor})
    continue()
  endif()
  add_library(mixtape_host_fortran_${flavor} INTERFACE)
  target_include_directories(mixtape_host_fortran_${flavor} SYSTEM INTERFACE ${mpi_INCLUDES})
  target_link_libraries(mixtape_host_fortran_${flavor} INTERFACE mixtape_fortran ${mpi_LINK})
  list(APPEND MIXTAPE_FORTRAN_FLAVORS ${flavor})
endforeach()
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)

# ---- installation: the component fortran ----
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mixtape)
install(TARGETS mixtape_fortran EXPORT mixtapeFortranTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT fortran)
install(DIRECTORY ${modules}/ DESTINATION ${installed_modules} COMPONENT fortran
        FILES_MATCHING PATTERN "*.mod")
install(EXPORT mixtapeFortranTargets NAMESPACE mixtape:: DESTINATION ${config_folder} COMPONENT fortran)
file(RELATIVE_PATH MIXTAPE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/mixtape-fortran.pc.in ${PROJECT_BINARY_DIR}/mixtape-fortran.pc
               @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mixtape-fortran.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT fortran)
list(JOIN MIXTAPE_FORTRAN_FLAVORS ", " flavors)
message(STATUS "Fortran modules: by ${CMAKE_Fortran_COMPILER_ID} (mpi_f08: ${flavors})")
