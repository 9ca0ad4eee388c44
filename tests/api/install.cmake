# Installs the build into a fresh folder and builds consumer/ against it, through find_package and through
# pkg-config; likewise consumer_mpi/ where the build has a plug-in, and consumer_fortran/ where it has the
# Fortran modules.
function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/usr)
must(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/found -DCMAKE_PREFIX_PATH=${WORK}/usr
     -DCMAKE_C_COMPILER=${COMPILER} -DCMAKE_C_FLAGS=${FLAGS})
must(${CMAKE_COMMAND} --build ${WORK}/found)
must(${WORK}/found/consumer)
must(${WORK}/found/consumer_static)

file(GLOB_RECURSE description ${WORK}/usr/*/mixtape.pc)
get_filename_component(folder ${description} DIRECTORY)
get_filename_component(libraries ${folder} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
must(pkg-config --cflags --libs mixtape)
string(STRIP "${output}" arguments)
set(arguments "${FLAGS} ${CONSUMER}/consumer.c -o ${WORK}/described ${arguments} -Wl,-rpath,${libraries}")
separate_arguments(arguments UNIX_COMMAND "${arguments}")
must(${COMPILER} ${arguments})
must(${WORK}/described)

file(GLOB_RECURSE plugins ${WORK}/usr/*/mixtape_mpi_*.so)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER}_mpi -B ${WORK}/found_mpi
                        -DCMAKE_PREFIX_PATH=${WORK}/usr -DCMAKE_C_COMPILER=${COMPILER}
                        -DCMAKE_C_FLAGS=${FLAGS}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(plugins)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "consumer_mpi: ${output}")
  endif()
  must(${CMAKE_COMMAND} --build ${WORK}/found_mpi)
  must(${WORK}/found_mpi/consumer)
  must(pkg-config --cflags --libs mixtape)
  set(expected "${output}")
  must(pkg-config --cflags --libs mixtape-mpi)
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "mixtape-mpi.pc says ${output}; expected what mixtape.pc says: ${expected}")
  endif()
elseif(result EQUAL 0 OR NOT output MATCHES "mpi") # find_package must say so
  message(FATAL_ERROR "without a plug-in, find_package of the component mpi says: ${output}")
endif()

file(GLOB_RECURSE module ${WORK}/usr/*/mixtape.mod)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER}_fortran -B ${WORK}/found_fortran
                        -DCMAKE_PREFIX_PATH=${WORK}/usr -DCMAKE_Fortran_FLAGS=${FLAGS}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT module) # find_package must then say so
  if(result EQUAL 0)
    message(FATAL_ERROR "find_package finds the component fortran, which is not installed")
  endif()
  return()
endif()
if(NOT result EQUAL 0)
  message(FATAL_ERROR "consumer_fortran: ${output}")
endif()
must(${CMAKE_COMMAND} --build ${WORK}/found_fortran)
must(${WORK}/found_fortran/consumer)
must(pkg-config --cflags --libs mixtape-fortran)
string(STRIP "${output}" arguments)
set(arguments "${FLAGS} ${CONSUMER}_fortran/consumer.f90 -o ${WORK}/described_fortran ${arguments}")
separate_arguments(arguments UNIX_COMMAND "${arguments} -Wl,-rpath,${libraries}")
must(gfortran ${arguments})
must(${WORK}/described_fortran)
