# Only kernel files get instruction-set flags, by the end of their names. Kernels are chosen at run time.
# a * b + c is not contracted: element-wise kernels round each operation, so that all instruction sets and
# TensorFlow's kernels give the same bits. Products call fused multiply-adds explicitly.
set(MIXTAPE_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(MIXTAPE_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
set(MIXTAPE_FLAGS_avx512bf16 ${MIXTAPE_FLAGS_avx512} -mavx512bf16)
set(MIXTAPE_FLAGS_avx512fp16 ${MIXTAPE_FLAGS_avx512} -mavx512fp16)
set(MIXTAPE_FLAGS_amx ${MIXTAPE_FLAGS_avx512bf16} -mamx-tile -mamx-bf16)

function(mixtape_kernel_flags sources)
  foreach(source ${sources})
    if(source MATCHES "_(avx2|avx512|avx512bf16|avx512fp16|amx)\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${MIXTAPE_FLAGS_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()
