"""Prints the numbers of test_images.c. Needs tensorflow."""

import numpy as np
import tensorflow as tf

np.set_printoptions(precision=9, suppress=True, linewidth=100000, threshold=100000)
def show(n,a): print(n, ', '.join('%.9g'%v for v in np.asarray(a).ravel()))
x=np.array([3,1,-2,5,0,4,2],np.float32).reshape(1,7,1,1)
for m in ['nearest','bilinear','bicubic','lanczos3','lanczos5','area','gaussian','mitchellcubic']:
    for n in (4,10):
        for aa in (False,True):
            y=tf.image.resize(x,(n,1),method=m,antialias=aa).numpy()
            show(f'{m} {n} {aa}:',y)
img=np.arange(12,dtype=np.float32).reshape(1,3,4,1)
t=np.array([[0.8,-0.4,0.7,0.3,1.1,-0.9,0.02,-0.01]],np.float32)
for f in ['CONSTANT','REFLECT','WRAP','NEAREST']:
    for i in ['NEAREST','BILINEAR']:
        y=tf.raw_ops.ImageProjectiveTransformV3(images=img,transforms=t,output_shape=[3,4],fill_value=-1.0,
                                                interpolation=i,fill_mode=f).numpy()
        show(f+' '+i,y)
t=np.array([[-3.1,0,1.2,0,2.7,-4.3,0,0]],np.float32)
for f in ['CONSTANT','REFLECT','WRAP','NEAREST']:
    for i in ['NEAREST','BILINEAR']:
        y=tf.raw_ops.ImageProjectiveTransformV3(images=img,transforms=t,output_shape=[3,4],fill_value=-1.0,
                                                interpolation=i,fill_mode=f).numpy()
        show('far '+f+' '+i,y)
