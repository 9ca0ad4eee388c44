/* Our declarations of the PJRT C API against the header that comes with the plug-in (build/pjrt, by
 * scripts/bootstrap --check): sizes, offsets, places in the table of functions, constants. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/xla/pjrt_api.h"
#include "support/skip.h"

#ifdef TESTS_PJRT_HEADER
#include "pjrt_c_api.h"

/* A member at the same place, of the same size. */
#define SAME(ours, our_member, theirs, their_member)                                                         \
  do {                                                                                                       \
    assert_int_equal(offsetof(ours, our_member), offsetof(theirs, their_member));                            \
    assert_int_equal(sizeof(((ours *)0)->our_member), sizeof(((theirs *)0)->their_member));                  \
  } while (0)
/* The head, and no member of theirs behind ours. */
#define WHOLE(ours, theirs)                                                                                  \
  do {                                                                                                       \
    SAME(ours, struct_size, theirs, struct_size);                                                            \
    SAME(ours, extensions, theirs, extension_start);                                                         \
    assert_true(sizeof(ours) >= sizeof(theirs));                                                             \
  } while (0)

static void functions_have_their_places(void **state) {
  (void)state;
#define PLACE(ours, theirs)                                                                                  \
  assert_int_equal(offsetof(pjrt_api, functions) + ours * sizeof(pjrt_function *), offsetof(PJRT_Api, theirs))
  PLACE(PJRT_ERROR_DESTROY, PJRT_Error_Destroy);
  PLACE(PJRT_ERROR_MESSAGE, PJRT_Error_Message);
  PLACE(PJRT_ERROR_GET_CODE, PJRT_Error_GetCode);
  PLACE(PJRT_PLUGIN_INITIALIZE, PJRT_Plugin_Initialize);
  PLACE(PJRT_EVENT_DESTROY, PJRT_Event_Destroy);
  PLACE(PJRT_EVENT_IS_READY, PJRT_Event_IsReady);
  PLACE(PJRT_EVENT_ERROR, PJRT_Event_Error);
  PLACE(PJRT_EVENT_AWAIT, PJRT_Event_Await);
  PLACE(PJRT_CLIENT_CREATE, PJRT_Client_Create);
  PLACE(PJRT_CLIENT_DESTROY, PJRT_Client_Destroy);
  PLACE(PJRT_CLIENT_PLATFORM_NAME, PJRT_Client_PlatformName);
  PLACE(PJRT_CLIENT_PLATFORM_VERSION, PJRT_Client_PlatformVersion);
  PLACE(PJRT_CLIENT_ADDRESSABLE_DEVICES, PJRT_Client_AddressableDevices);
  PLACE(PJRT_CLIENT_COMPILE, PJRT_Client_Compile);
  PLACE(PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER, PJRT_Client_BufferFromHostBuffer);
  PLACE(PJRT_DESCRIPTION_KIND, PJRT_DeviceDescription_Kind);
  PLACE(PJRT_DESCRIPTION_TO_STRING, PJRT_DeviceDescription_ToString);
  PLACE(PJRT_DEVICE_GET_DESCRIPTION, PJRT_Device_GetDescription);
  PLACE(PJRT_DEVICE_MEMORY_STATS, PJRT_Device_MemoryStats);
  PLACE(PJRT_EXECUTABLE_DESTROY, PJRT_Executable_Destroy);
  PLACE(PJRT_EXECUTABLE_NUM_OUTPUTS, PJRT_Executable_NumOutputs);
  PLACE(PJRT_EXECUTABLE_SERIALIZE, PJRT_Executable_Serialize);
  PLACE(PJRT_LOADED_DESTROY, PJRT_LoadedExecutable_Destroy);
  PLACE(PJRT_LOADED_GET_EXECUTABLE, PJRT_LoadedExecutable_GetExecutable);
  PLACE(PJRT_LOADED_EXECUTE, PJRT_LoadedExecutable_Execute);
  PLACE(PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, PJRT_Executable_DeserializeAndLoad);
  PLACE(PJRT_BUFFER_DESTROY, PJRT_Buffer_Destroy);
  PLACE(PJRT_BUFFER_TO_HOST_BUFFER, PJRT_Buffer_ToHostBuffer);
  PLACE(PJRT_TOPOLOGY_CREATE, PJRT_TopologyDescription_Create);
  PLACE(PJRT_TOPOLOGY_DESTROY, PJRT_TopologyDescription_Destroy);
  PLACE(PJRT_TOPOLOGY_PLATFORM_NAME, PJRT_TopologyDescription_PlatformName);
  PLACE(PJRT_COMPILE, PJRT_Compile);
  PLACE(PJRT_CLIENT_DMA_MAP, PJRT_Client_DmaMap);
  PLACE(PJRT_CLIENT_DMA_UNMAP, PJRT_Client_DmaUnmap);
  SAME(pjrt_api, struct_size, PJRT_Api, struct_size);
  SAME(pjrt_api, version, PJRT_Api, pjrt_api_version);
  SAME(pjrt_api, version.major, PJRT_Api, pjrt_api_version.major_version);
  SAME(pjrt_api, version.minor, PJRT_Api, pjrt_api_version.minor_version);
}

static void arguments_of_one_object(void **state) {
  (void)state;
#define OBJECT(theirs, member)                                                                               \
  do {                                                                                                       \
    WHOLE(pjrt_object_args, theirs);                                                                         \
    SAME(pjrt_object_args, object, theirs, member);                                                          \
  } while (0)
  OBJECT(PJRT_Error_Destroy_Args, error);
  OBJECT(PJRT_Event_Destroy_Args, event);
  OBJECT(PJRT_Event_Error_Args, event);
  OBJECT(PJRT_Event_Await_Args, event);
  OBJECT(PJRT_Client_Destroy_Args, client);
  OBJECT(PJRT_TopologyDescription_Destroy_Args, topology);
  OBJECT(PJRT_Executable_Destroy_Args, executable);
  OBJECT(PJRT_LoadedExecutable_Destroy_Args, executable);
  OBJECT(PJRT_Buffer_Destroy_Args, buffer);
#define TEXT(theirs, member, text_member, size_member)                                                       \
  do {                                                                                                       \
    WHOLE(pjrt_text_args, theirs);                                                                           \
    SAME(pjrt_text_args, object, theirs, member);                                                            \
    SAME(pjrt_text_args, text, theirs, text_member);                                                         \
    SAME(pjrt_text_args, size, theirs, size_member);                                                         \
  } while (0)
  TEXT(PJRT_Error_Message_Args, error, message, message_size);
  TEXT(PJRT_Client_PlatformName_Args, client, platform_name, platform_name_size);
  TEXT(PJRT_Client_PlatformVersion_Args, client, platform_version, platform_version_size);
  TEXT(PJRT_TopologyDescription_PlatformName_Args, topology, platform_name, platform_name_size);
  TEXT(PJRT_DeviceDescription_Kind_Args, device_description, device_kind, device_kind_size);
  TEXT(PJRT_DeviceDescription_ToString_Args, device_description, to_string, to_string_size);
#define PART(theirs, member, part_member)                                                                    \
  do {                                                                                                       \
    WHOLE(pjrt_part_args, theirs);                                                                           \
    SAME(pjrt_part_args, object, theirs, member);                                                            \
    SAME(pjrt_part_args, part, theirs, part_member);                                                         \
  } while (0)
  PART(PJRT_Device_GetDescription_Args, device, device_description);
  PART(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable, executable);
  WHOLE(pjrt_is_ready_args, PJRT_Event_IsReady_Args);
  SAME(pjrt_is_ready_args, event, PJRT_Event_IsReady_Args, event);
  SAME(pjrt_is_ready_args, is_ready, PJRT_Event_IsReady_Args, is_ready);
  WHOLE(pjrt_error_code_args, PJRT_Error_GetCode_Args);
  SAME(pjrt_error_code_args, error, PJRT_Error_GetCode_Args, error);
  SAME(pjrt_error_code_args, code, PJRT_Error_GetCode_Args, code);
  WHOLE(pjrt_initialize_args, PJRT_Plugin_Initialize_Args);
}

static void arguments_of_clients_and_programs(void **state) {
  (void)state;
  WHOLE(pjrt_option, PJRT_NamedValue);
  SAME(pjrt_option, name, PJRT_NamedValue, name);
  SAME(pjrt_option, name_size, PJRT_NamedValue, name_size);
  SAME(pjrt_option, type, PJRT_NamedValue, type);
  SAME(pjrt_option, value.text, PJRT_NamedValue, string_value);
  SAME(pjrt_option, value.integers, PJRT_NamedValue, int64_array_value);
  SAME(pjrt_option, value_size, PJRT_NamedValue, value_size);
  WHOLE(pjrt_client_create_args, PJRT_Client_Create_Args);
  SAME(pjrt_client_create_args, options, PJRT_Client_Create_Args, create_options);
  SAME(pjrt_client_create_args, option_count, PJRT_Client_Create_Args, num_options);
  SAME(pjrt_client_create_args, client, PJRT_Client_Create_Args, client);
  WHOLE(pjrt_devices_args, PJRT_Client_AddressableDevices_Args);
  SAME(pjrt_devices_args, client, PJRT_Client_AddressableDevices_Args, client);
  SAME(pjrt_devices_args, devices, PJRT_Client_AddressableDevices_Args, addressable_devices);
  SAME(pjrt_devices_args, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
  WHOLE(pjrt_memory_stats_args, PJRT_Device_MemoryStats_Args);
  SAME(pjrt_memory_stats_args, device, PJRT_Device_MemoryStats_Args, device);
  SAME(pjrt_memory_stats_args, used, PJRT_Device_MemoryStats_Args, bytes_in_use);
  SAME(pjrt_memory_stats_args, limit.number, PJRT_Device_MemoryStats_Args, bytes_limit);
  SAME(pjrt_memory_stats_args, limit.is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
  WHOLE(pjrt_program, PJRT_Program);
  SAME(pjrt_program, code, PJRT_Program, code);
  SAME(pjrt_program, code_size, PJRT_Program, code_size);
  SAME(pjrt_program, format, PJRT_Program, format);
  SAME(pjrt_program, format_size, PJRT_Program, format_size);
  WHOLE(pjrt_client_compile_args, PJRT_Client_Compile_Args);
  SAME(pjrt_client_compile_args, client, PJRT_Client_Compile_Args, client);
  SAME(pjrt_client_compile_args, program, PJRT_Client_Compile_Args, program);
  SAME(pjrt_client_compile_args, options, PJRT_Client_Compile_Args, compile_options);
  SAME(pjrt_client_compile_args, options_size, PJRT_Client_Compile_Args, compile_options_size);
  SAME(pjrt_client_compile_args, loaded, PJRT_Client_Compile_Args, executable);
  WHOLE(pjrt_topology_create_args, PJRT_TopologyDescription_Create_Args);
  SAME(pjrt_topology_create_args, name, PJRT_TopologyDescription_Create_Args, topology_name);
  SAME(pjrt_topology_create_args, name_size, PJRT_TopologyDescription_Create_Args, topology_name_size);
  SAME(pjrt_topology_create_args, options, PJRT_TopologyDescription_Create_Args, create_options);
  SAME(pjrt_topology_create_args, option_count, PJRT_TopologyDescription_Create_Args, num_options);
  SAME(pjrt_topology_create_args, topology, PJRT_TopologyDescription_Create_Args, topology);
  WHOLE(pjrt_compile_args, PJRT_Compile_Args);
  SAME(pjrt_compile_args, topology, PJRT_Compile_Args, topology);
  SAME(pjrt_compile_args, program, PJRT_Compile_Args, program);
  SAME(pjrt_compile_args, options, PJRT_Compile_Args, compile_options);
  SAME(pjrt_compile_args, options_size, PJRT_Compile_Args, compile_options_size);
  SAME(pjrt_compile_args, client, PJRT_Compile_Args, client);
  SAME(pjrt_compile_args, executable, PJRT_Compile_Args, executable);
  WHOLE(pjrt_num_outputs_args, PJRT_Executable_NumOutputs_Args);
  SAME(pjrt_num_outputs_args, executable, PJRT_Executable_NumOutputs_Args, executable);
  SAME(pjrt_num_outputs_args, count, PJRT_Executable_NumOutputs_Args, num_outputs);
  WHOLE(pjrt_serialize_args, PJRT_Executable_Serialize_Args);
  SAME(pjrt_serialize_args, executable, PJRT_Executable_Serialize_Args, executable);
  SAME(pjrt_serialize_args, bytes, PJRT_Executable_Serialize_Args, serialized_bytes);
  SAME(pjrt_serialize_args, size, PJRT_Executable_Serialize_Args, serialized_bytes_size);
  SAME(pjrt_serialize_args, serialized, PJRT_Executable_Serialize_Args, serialized_executable);
  SAME(pjrt_serialize_args, destroy, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
  WHOLE(pjrt_deserialize_args, PJRT_Executable_DeserializeAndLoad_Args);
  SAME(pjrt_deserialize_args, client, PJRT_Executable_DeserializeAndLoad_Args, client);
  SAME(pjrt_deserialize_args, bytes, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable);
  SAME(pjrt_deserialize_args, size, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size);
  SAME(pjrt_deserialize_args, loaded, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
}

static void arguments_of_buffers_and_runs(void **state) {
  (void)state;
  WHOLE(pjrt_layout, PJRT_Buffer_MemoryLayout);
  SAME(pjrt_layout, tiled.struct_size, PJRT_Buffer_MemoryLayout, tiled.struct_size);
  SAME(pjrt_layout, tiled.minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major);
  SAME(pjrt_layout, tiled.minor_to_major_size, PJRT_Buffer_MemoryLayout, tiled.minor_to_major_size);
  SAME(pjrt_layout, tiled.tile_dims, PJRT_Buffer_MemoryLayout, tiled.tile_dims);
  SAME(pjrt_layout, tiled.tile_dim_sizes, PJRT_Buffer_MemoryLayout, tiled.tile_dim_sizes);
  SAME(pjrt_layout, tiled.tile_count, PJRT_Buffer_MemoryLayout, tiled.num_tiles);
  SAME(pjrt_layout, kind, PJRT_Buffer_MemoryLayout, type);
  WHOLE(pjrt_buffer_from_host_args, PJRT_Client_BufferFromHostBuffer_Args);
#define UP(ours, theirs) SAME(pjrt_buffer_from_host_args, ours, PJRT_Client_BufferFromHostBuffer_Args, theirs)
  UP(client, client);
  UP(data, data);
  UP(type, type);
  UP(dims, dims);
  UP(rank, num_dims);
  UP(byte_strides, byte_strides);
  UP(byte_stride_count, num_byte_strides);
  UP(semantics, host_buffer_semantics);
  UP(device, device);
  UP(memory, memory);
  UP(layout, device_layout);
  UP(done, done_with_host_buffer);
  UP(buffer, buffer);
  WHOLE(pjrt_dma_map_args, PJRT_Client_DmaMap_Args);
  SAME(pjrt_dma_map_args, client, PJRT_Client_DmaMap_Args, client);
  SAME(pjrt_dma_map_args, data, PJRT_Client_DmaMap_Args, data);
  SAME(pjrt_dma_map_args, size, PJRT_Client_DmaMap_Args, size);
  WHOLE(pjrt_dma_unmap_args, PJRT_Client_DmaUnmap_Args);
  SAME(pjrt_dma_unmap_args, client, PJRT_Client_DmaUnmap_Args, client);
  SAME(pjrt_dma_unmap_args, data, PJRT_Client_DmaUnmap_Args, data);
  WHOLE(pjrt_buffer_to_host_args, PJRT_Buffer_ToHostBuffer_Args);
#define DOWN(ours, theirs) SAME(pjrt_buffer_to_host_args, ours, PJRT_Buffer_ToHostBuffer_Args, theirs)
  DOWN(buffer, src);
  DOWN(layout, host_layout);
  DOWN(data, dst);
  DOWN(bytes, dst_size);
  DOWN(done, event);
  WHOLE(pjrt_execute_options, PJRT_ExecuteOptions);
#define OPTION(ours, theirs) SAME(pjrt_execute_options, ours, PJRT_ExecuteOptions, theirs)
  OPTION(callbacks[0], send_callbacks);
  OPTION(callback_counts[0], num_send_ops);
  OPTION(launch_id, launch_id);
  OPTION(keep, non_donatable_input_indices);
  OPTION(keep_count, num_non_donatable_input_indices);
  OPTION(context, context);
  WHOLE(pjrt_execute_args, PJRT_LoadedExecutable_Execute_Args);
#define RUN(ours, theirs) SAME(pjrt_execute_args, ours, PJRT_LoadedExecutable_Execute_Args, theirs)
  RUN(loaded, executable);
  RUN(options, options);
  RUN(arguments, argument_lists);
  RUN(device_count, num_devices);
  RUN(argument_count, num_args);
  RUN(results, output_lists);
  RUN(done, device_complete_events);
  RUN(device, execute_device);
}

static void constants_have_their_values(void **state) {
  (void)state;
  assert_int_equal(PJRT_MAJOR, PJRT_API_MAJOR);
  assert_int_equal(PJRT_PRED, PJRT_Buffer_Type_PRED);
  assert_int_equal(PJRT_S8, PJRT_Buffer_Type_S8);
  assert_int_equal(PJRT_S16, PJRT_Buffer_Type_S16);
  assert_int_equal(PJRT_S32, PJRT_Buffer_Type_S32);
  assert_int_equal(PJRT_S64, PJRT_Buffer_Type_S64);
  assert_int_equal(PJRT_U8, PJRT_Buffer_Type_U8);
  assert_int_equal(PJRT_F16, PJRT_Buffer_Type_F16);
  assert_int_equal(PJRT_F32, PJRT_Buffer_Type_F32);
  assert_int_equal(PJRT_F64, PJRT_Buffer_Type_F64);
  assert_int_equal(PJRT_BF16, PJRT_Buffer_Type_BF16);
  assert_int_equal(PJRT_OPTION_TEXT, PJRT_NamedValue_kString);
  assert_int_equal(PJRT_RESOURCE_EXHAUSTED, PJRT_Error_Code_RESOURCE_EXHAUSTED);
  assert_int_equal(PJRT_UNIMPLEMENTED, PJRT_Error_Code_UNIMPLEMENTED);
  assert_int_equal(PJRT_IMMUTABLE_ONLY_DURING_CALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  assert_int_equal(PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
                   PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);
  assert_int_equal(PJRT_LAYOUT_TILED, PJRT_Buffer_MemoryLayout_Type_Tiled);
}

#else

static void no_header(void **state) {
  (void)state;
  SKIP("build/pjrt has no pjrt_c_api.h: scripts/bootstrap --check fetches it with the plug-in");
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
#ifdef TESTS_PJRT_HEADER
      cmocka_unit_test(functions_have_their_places),       cmocka_unit_test(arguments_of_one_object),
      cmocka_unit_test(arguments_of_clients_and_programs), cmocka_unit_test(arguments_of_buffers_and_runs),
      cmocka_unit_test(constants_have_their_values),
#else
      cmocka_unit_test(no_header),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
