! What the procedures of mixtape_calls share: C's texts from Fortran's and back, and the pending error.
module mixtape_support
  use mixtape_c
  implicit none
  private
  public :: text_memory, set_text, set_texts, make_texts, text_of, has_room
  public :: take_message, take_error, record_error

  ! A text with C's null character behind it, for as long as a call takes: the library copies what it keeps.
  type :: text_memory
    character(kind=c_char), allocatable :: letters(:)
  end type text_memory

  interface
    pure function c_strlen(text) bind(C, name="strlen") result(length)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

contains

  subroutine record_error(status, message)
    integer(c_int), intent(in) :: status
    character(*), intent(in) :: message
    character(kind=c_char), target :: letters(1024)
    integer(c_int) :: pending
    integer :: i, length
    length = min(len_trim(message), size(letters) - 1)
    do i = 1, length
      letters(i) = message(i:i)
    end do
    letters(length + 1) = c_null_char
    pending = c_mix_error_record(status, c_loc(letters))
  end subroutine record_error

  subroutine record_out_of_memory()
    call record_error(MIX_MEMORY_ERROR, "out of memory: a text of Fortran's")
  end subroutine record_out_of_memory

  ! Without the blanks at its end. Absent: NULL.
  subroutine set_text(pointer, memory, text)
    type(c_ptr), intent(out) :: pointer
    type(text_memory), intent(inout), target :: memory
    character(*), intent(in), optional :: text
    integer :: i, failed
    pointer = c_null_ptr
    if (.not. present(text)) return
    allocate (memory%letters(len_trim(text) + 1), stat=failed)
    if (failed /= 0) then
      call record_out_of_memory()
      return
    end if
    do i = 1, len_trim(text)
      memory%letters(i) = text(i:i)
    end do
    memory%letters(len_trim(text) + 1) = c_null_char
    pointer = c_loc(memory%letters)
  end subroutine set_text

  ! An array of texts into an array of a C struct, whose other items stay NULL.
  subroutine set_texts(pointers, memory, argument, texts)
    type(c_ptr), intent(inout) :: pointers(:)
    type(text_memory), allocatable, target, intent(inout) :: memory(:)
    character(*), intent(in) :: argument
    character(*), intent(in), optional :: texts(:)
    integer :: i, failed
    if (.not. present(texts)) return
    if (.not. has_room(argument, size(texts), size(pointers))) return
    allocate (memory(size(texts)), stat=failed)
    if (failed /= 0) then
      call record_out_of_memory()
      return
    end if
    do i = 1, size(texts)
      call set_text(pointers(i), memory(i), texts(i))
    end do
  end subroutine set_texts

  ! An array of texts for a C function. Absent: not allocated, which is an absent argument.
  subroutine make_texts(pointers, memory, texts)
    type(c_ptr), allocatable, intent(inout) :: pointers(:)
    type(text_memory), allocatable, target, intent(inout) :: memory(:)
    character(*), intent(in), optional :: texts(:)
    integer :: failed
    if (.not. present(texts)) return
    allocate (pointers(size(texts)), stat=failed)
    if (failed /= 0) then
      call record_out_of_memory()
      return
    end if
    pointers = c_null_ptr
    call set_texts(pointers, memory, "names", texts)
  end subroutine make_texts

  ! A C text as Fortran's; NULL is empty.
  function text_of(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i, length, failed
    length = 0
    if (c_associated(pointer)) length = int(c_strlen(pointer))
    allocate (character(length) :: text, stat=failed)
    if (failed /= 0) then
      call record_out_of_memory()
      text = ""
      return
    end if
    if (length == 0) return
    call c_f_pointer(pointer, letters, [length])
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function text_of

  function has_room(argument, count, room) result(fits)
    character(*), intent(in) :: argument
    integer, intent(in) :: count, room
    logical :: fits
    character(160) :: message
    fits = count <= room
    if (fits) return
    write (message, "(a, ' has ', i0, ' items; expected no more than ', i0)") argument, count, room
    call record_error(MIX_VALUE_ERROR, message)
  end function has_room

  ! take_message and then take_error hand the pending error to a caller who asked for it, and the next call
  ! begins without one. They are two because gfortran 12 loses the length of a message that one optional
  ! argument hands on to another.
  subroutine take_message(errmsg)
    character(:), allocatable, intent(inout) :: errmsg
    if (mix_error() /= MIX_OK) errmsg = text_of(c_mix_error_message())
  end subroutine take_message

  subroutine take_error(stat, has_message, status)
    integer(c_int), intent(out), optional :: stat
    logical, intent(in) :: has_message
    integer(c_int), intent(in), optional :: status
    integer(c_int) :: code
    code = mix_error()
    if (code == MIX_OK .and. present(status)) code = status
    if (present(stat)) stat = code
    if (present(stat) .or. has_message) call mix_error_clear()
  end subroutine take_error
end module mixtape_support
