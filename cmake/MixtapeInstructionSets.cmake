# Only kernel files get instruction-set flags, by the end of their names. Kernels are chosen at run time.
# a * b + c is not contracted: element-wise kernels round each operation, so that all instruction sets and
# TensorFlow's kernels give the same bits. Products call fused multiply-adds explicitly.
set(MIXTAPE_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(MIXTAPE_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
set(MIXTAPE_FLAGS_avx512bf16 ${MIXTAPE_FLAGS_avx512} -mavx512bf16)
set(MIXTAPE_FLAGS_avx512fp16 ${MIXTAPE_FLAGS_avx512} -mavx512fp16)
set(MIXTAPE_FLAGS_avx512vnni ${MIXTAPE_FLAGS_avx512} -mavx512vnni)
set(MIXTAPE_FLAGS_avxvnni ${MIXTAPE_FLAGS_avx2} -mavxvnni)
set(MIXTAPE_FLAGS_amx ${MIXTAPE_FLAGS_avx512bf16} -mamx-tile -mamx-bf16 -mamx-int8)
set(MIXTAPE_FLAGS_neon -march=armv8-a)
set(MIXTAPE_FLAGS_neonbf16 -march=armv8.2-a+bf16)

# The names that files end in: of all architectures, and of the one that is built for.
set(MIXTAPE_SETS_x86 avx2 avx512 avx512bf16 avx512fp16 avx512vnni avxvnni amx)
set(MIXTAPE_SETS_arm64 neon neonbf16)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(MIXTAPE_ARCHITECTURE x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(MIXTAPE_ARCHITECTURE arm64)
else()
  message(FATAL_ERROR "Mixtape runs on x86-64 and arm64, not on ${CMAKE_SYSTEM_PROCESSOR}")
endif()
if(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "Mixtape runs on little-endian processors alone: files, checkpoints and 16-bit kernels "
                      "read and write numbers as they lie in memory")
endif()

# Leaves out of the list what other architectures have: kernels by set, and files named after one.
function(mixtape_choose_sources list)
  set(sources ${${list}})
  foreach(architecture x86 arm64)
    if(NOT architecture STREQUAL MIXTAPE_ARCHITECTURE)
      string(REPLACE ";" "|" others "${architecture};${MIXTAPE_SETS_${architecture}}")
      list(FILTER sources EXCLUDE REGEX "_(${others})\\.c$")
    endif()
  endforeach()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()

function(mixtape_kernel_flags sources)
  string(REPLACE ";" "|" sets "${MIXTAPE_SETS_${MIXTAPE_ARCHITECTURE}}")
  foreach(source ${sources})
    if(sets AND source MATCHES "_(${sets})\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${MIXTAPE_FLAGS_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()
