! A user's program, built against an installed copy.
program consumer
  use mixtape
  implicit none
  type(c_ptr) :: model
  real(c_double) :: value
  integer :: stat
  value = mix_tensor_item(mix_scalar(3._c_double, MIX_FLOAT16))
  model = mix_model_load("no such file.keras", stat=stat)
  print "(2a, f4.1)", mix_version(), " ", value
  call mix_shutdown()
  if (abs(value - 3) > 0 .or. stat /= MIX_IO_ERROR) error stop 1
end program consumer
