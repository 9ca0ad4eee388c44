! Shapes and axes from arrays of integers, and tensors from and to memory of Fortran's.
module mixtape_shapes
  use mixtape_c
  use mixtape_support
  implicit none
  private
  public :: mix_shape_of, mix_axes_of, tensor_of, read_tensor

contains

  ! A shape with its axes as C and Keras write them: mix_shape_of([28, 28, 1]).
  function mix_shape_of(dims) result(shape_)
    integer, intent(in) :: dims(:)
    type(mix_shape) :: shape_
    if (.not. has_room("mix_shape_of: dims", size(dims), MIX_MAX_RANK)) return
    shape_%rank = size(dims)
    shape_%dims(:size(dims)) = dims
  end function mix_shape_of

  ! A list of axes as C and Keras count them, from 0.
  function mix_axes_of(axes) result(list)
    integer, intent(in) :: axes(:)
    type(mix_axes) :: list
    if (.not. has_room("mix_axes_of: axes", size(axes), MIX_MAX_RANK)) return
    list%count = size(axes)
    list%axis(:size(axes)) = axes
  end function mix_axes_of

  ! The first axis of a Fortran array, whose elements lie side by side, is the last one of a tensor.
  function tensor_of(place, dtype, extents) result(tensor)
    type(c_ptr), intent(in) :: place
    integer(c_int), intent(in) :: dtype
    integer, intent(in) :: extents(:)
    type(c_ptr) :: tensor
    tensor = c_mix_tensor_from(place, dtype, mix_shape_of(extents(size(extents):1:-1)))
  end function tensor_of

  subroutine read_tensor(tensor, place, dtype, extents)
    type(c_ptr), intent(in) :: tensor, place
    integer(c_int), intent(in) :: dtype
    integer, intent(in) :: extents(:)
    type(mix_shape) :: own
    integer(c_int) :: status
    if (mix_tensor_dtype(tensor) /= MIX_DTYPE_NONE) then
      own = mix_tensor_shape(tensor)
      if (.not. has_extents(own, extents)) then
        call record_other_shape(own, extents)
        return
      end if
    end if
    status = c_mix_tensor_read(tensor, dtype, place, product(int(extents, c_int64_t)))
  end subroutine read_tensor

  logical function has_extents(own, extents)
    type(mix_shape), intent(in) :: own
    integer, intent(in) :: extents(:)
    has_extents = own%rank == size(extents)
    if (has_extents) has_extents = all(own%dims(own%rank:1:-1) == extents)
  end function has_extents

  subroutine record_other_shape(own, extents)
    type(mix_shape), intent(in) :: own
    integer, intent(in) :: extents(:)
    call record_error(MIX_VALUE_ERROR, "mix_tensor_to_array: the array has the shape " // &
      text_of_dims(int(extents, c_int64_t)) // "; expected " // text_of_dims(own%dims(own%rank:1:-1)) // &
      ", the axes of the tensor " // text_of_dims(own%dims(:own%rank)) // " in Fortran's order")
  end subroutine record_other_shape

  function text_of_dims(dims) result(text)
    integer(c_int64_t), intent(in) :: dims(:)
    character(200) :: buffer
    character(:), allocatable :: text
    write (buffer, "('(', *(i0, :, ', '))") dims
    text = trim(buffer) // ")"
  end function text_of_dims
end module mixtape_shapes
