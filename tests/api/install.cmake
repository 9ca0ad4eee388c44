# Installs the build into a fresh folder and builds consumer/ against it, through find_package and through
# pkg-config.
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
